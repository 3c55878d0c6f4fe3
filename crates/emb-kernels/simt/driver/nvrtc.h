// Programs compiled at run time: what stands for their PTX, and loading them.
#pragma once

#include <string>

namespace driver {

// The shared object that an image names, where nvrtc.cpp made the image; else empty.
std::string compiled_object(const char* image);
void* load_object(const std::string& path);
void unload_object(void* object);

}  // namespace driver
