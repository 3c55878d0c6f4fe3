// Status codes of the driver interface, and the macro that exports its functions.
#pragma once

#include <cstdint>

#define DRIVER_API extern "C" __attribute__((visibility("default")))

namespace driver {

// Values of `CUresult` that this driver returns; the whole table with names is in errors.cpp.
enum Code : int {
    kOk = 0,
    kInvalidValue = 1,
    kOutOfMemory = 2,
    kNotInitialized = 3,
    kInvalidDevice = 101,
    kInvalidImage = 200,
    kInvalidContext = 201,
    kFileNotFound = 301,
    kInitFailed = 303,
    kInvalidHandle = 400,
    kNotFound = 500,
    kNotReady = 600,
    kIllegalAddress = 700,
    kPeerAccessAlreadyEnabled = 704,
    kPeerAccessNotEnabled = 705,
    kAlreadyRegistered = 712,
    kNotRegistered = 713,
    kLaunchFailed = 719,
    kNotPermitted = 800,
    kNotSupported = 801,
    kCaptureUnsupported = 900,
    kCaptureInvalidated = 901,
    kCaptureMerge = 902,
    kCaptureUnmatched = 903,
    kCaptureUnjoined = 904,
    kCaptureIsolation = 905,
    kCaptureImplicit = 906,
    kCapturedEvent = 907,
    kCaptureWrongThread = 908,
};

}  // namespace driver
