// Kernels by name. SIMT_REGISTER(kernel) derives from the function's type how to call it and how
// large its parameters are; a shared object that is loaded later adds its kernels by itself.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

namespace simt {

// Calls a kernel's function with parameters given as cuLaunchKernel takes them: one pointer each.
using Caller = void (*)(void (*function)(), void** parameters);

struct Kernel {
    const char* name;
    void (*function)();
    Caller call;
    const size_t* parameter_bytes;
    size_t parameters;
};

// Holds a kernel's name as long as the object that has the kernel is loaded.
class Registration {
  public:
    explicit Registration(const Kernel& kernel);
    ~Registration();
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;

    Kernel kernel;
    size_t shared_allowed = 48 * 1024;  // bytes of dynamic shared memory a launch may ask for
    Registration* older = nullptr;      // the next in the list of all, newest first
};

template <typename... P>
struct Signature {
    static constexpr size_t bytes[sizeof...(P) + 1] = {sizeof(std::decay_t<P>)..., 0};

    template <size_t... I>
    static void spread(void (*kernel)(P...), void** parameters, std::index_sequence<I...>) {
        kernel(*static_cast<std::decay_t<P>*>(parameters[I])...);
    }
    static void call(void (*function)(), [[maybe_unused]] void** parameters) {
        spread(reinterpret_cast<void (*)(P...)>(function), parameters,
               std::index_sequence_for<P...>{});
    }
};

template <typename... P>
inline Kernel describe(const char* name, void (*kernel)(P...)) {
    return Kernel{name, reinterpret_cast<void (*)()>(kernel), &Signature<P...>::call,
                  Signature<P...>::bytes, sizeof...(P)};
}

}  // namespace simt

#define SIMT_REGISTER(NAME) \
    static ::simt::Registration simt_registration_##NAME{::simt::describe(#NAME, &NAME)};
