// NVRTC: compiles a user's kernels with the C++ compiler. What is handed out as PTX is a text that
// names the shared object, which cuModuleLoadData recognises.
#include "nvrtc.h"

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <mutex>
#include <sstream>
#include <vector>

#include "codes.h"
#include "simt_launch.h"
#include "state.h"

namespace driver {
namespace {

const char* const kMark = "// simt shared object: ";

// Of nvrtcResult.
enum { kSuccess = 0, kInvalidInput = 3, kInvalidProgram = 4, kCompilation = 6 };

struct File {
    std::string name, text;
};

struct Program {
    std::string source, image, log;
    std::vector<File> headers;
};

// The folder of this library: what it compiles is linked to it, and finds it again from there.
std::string own_path() {
    Dl_info info;
    if (!dladdr(reinterpret_cast<void*>(&compiled_object), &info)) return "";
    char resolved[4096];
    return realpath(info.dli_fname, resolved) ? resolved : info.dli_fname;
}

// Folders live until the process exits: an image may be loaded again, on another device.
struct Folder {
    std::string path;
    std::vector<std::string> files;
};
struct Folders {
    std::mutex guard;
    std::vector<Folder> all;
};
Folders& folders() {
    static auto* the_folders = new Folders;
    return *the_folders;
}

void remove_folders() {
    for (const Folder& folder : folders().all) {
        for (const std::string& file : folder.files) unlink((folder.path + "/" + file).c_str());
        rmdir(folder.path.c_str());
    }
}

// A folder with the program and its headers in it.
std::string fresh_folder(const Program& program) {
    const char* base = getenv("TMPDIR");
    std::string path = std::string(base && *base ? base : "/tmp") + "/simt-nvrtc-XXXXXX";
    if (!mkdtemp(path.data())) return "";
    Folder folder{path, {"program.cu", "program.o", "program.so", "log"}};
    std::ofstream(path + "/program.cu") << program.source;
    for (const File& header : program.headers) {
        std::ofstream(path + "/" + header.name) << header.text;
        folder.files.push_back(header.name);
    }
    const std::lock_guard<std::mutex> lock(folders().guard);
    if (folders().all.empty()) atexit(remove_folders);
    folders().all.push_back(folder);
    return path;
}

std::string quoted(const std::string& word) {
    std::string out = "'";
    for (char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}

// Options that a C++ compiler knows as NVRTC does.
std::string translated(int count, const char* const* options) {
    std::string out;
    for (int i = 0; i < count; ++i) {
        std::string option = options[i];
        if (option.rfind("--include-path=", 0) == 0) option = "-I" + option.substr(15);
        if (option.rfind("--define-macro=", 0) == 0) option = "-D" + option.substr(15);
        if (option.rfind("-I", 0) == 0 || option.rfind("-D", 0) == 0) out += " " + quoted(option);
    }
    return out;
}

std::string includes() {
    std::string out;
    std::stringstream list(getenv("SIMT_INCLUDE") ? getenv("SIMT_INCLUDE") : "");
    for (std::string folder; std::getline(list, folder, ':');) {
        if (!folder.empty()) out += " -I" + quoted(folder);
    }
    return out;
}

std::string read_all(const std::string& path) {
    std::ifstream file(path);
    return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
}

// Lets an object be unloaded, with gcc; clang needs no option for it.
#ifdef __clang__
#define SIMT_UNLOADS ""
#else
#define SIMT_UNLOADS "-fno-gnu-unique "
#endif

// What the sanitizers of this build need, kernels compiled later need as well.
#ifndef SIMT_FLAGS
#define SIMT_CXX "g++"
#define SIMT_FLAGS ""
#define SIMT_LINK_FLAGS ""
#endif

bool compile(Program& program, const std::string& options) {
    const std::string folder = fresh_folder(program);
    const std::string library = own_path();
    const char* named = getenv("CXX");
    const std::string compiler = named && *named ? named : SIMT_CXX;
    const std::string log = " 2>>" + quoted(folder + "/log");
    // In two steps: the count build compiles for the thread sanitizer, but links none.
    const std::string command =
        compiler +
        " -x c++ -c -fPIC -std=c++17 -O1 -ffp-contract=off -DEMB_HOST_SIM "
        "-Wno-unknown-pragmas " SIMT_UNLOADS SIMT_FLAGS +
        includes() + options + " -o " + quoted(folder + "/program.o") + " " +
        quoted(folder + "/program.cu") + log + " && " + compiler +
        " -shared -Wl,-Bsymbolic " SIMT_LINK_FLAGS " -o " + quoted(folder + "/program.so") + " " +
        quoted(folder + "/program.o") + " " + quoted(library) + " -Wl,-rpath," +
        quoted(library.substr(0, library.rfind('/'))) + log;
    const int status = system(command.c_str());
    program.log = read_all(folder + "/log");
    program.image = std::string(kMark) + folder + "/program.so\n";
    return status == 0;
}

}  // namespace

std::string compiled_object(const char* image) {
    if (strncmp(image, kMark, strlen(kMark)) != 0) return "";
    const char* begin = image + strlen(kMark);
    const char* end = strchr(begin, '\n');
    return end ? std::string(begin, end) : "";
}

void* load_object(const std::string& path) {
    void* object = simt_load(path.c_str());
    if (!object) say("%s does not load: %s", path.c_str(), simt_error());
    return object;
}

void unload_object(void* object) { simt_unload(object); }

}  // namespace driver

using driver::Program;

DRIVER_API int nvrtcVersion(int* major, int* minor) {
    *major = 13;
    *minor = 0;
    return driver::kSuccess;
}

DRIVER_API const char* nvrtcGetErrorString(int result) {
    return result == driver::kSuccess       ? "NVRTC_SUCCESS"
           : result == driver::kCompilation ? "NVRTC_ERROR_COMPILATION"
                                            : "NVRTC_ERROR";
}

DRIVER_API int nvrtcCreateProgram(Program** program, const char* source, const char*, int headers,
                                  const char* const* texts, const char* const* names) {
    if (!program || !source || headers < 0) return driver::kInvalidInput;
    std::vector<driver::File> files;
    for (int i = 0; i < headers; ++i) {
        // They lie beside the program: no folders.
        if (strchr(names[i], '/')) return driver::kInvalidInput;
        files.push_back({names[i], texts[i]});
    }
    *program = new Program{source, "", "", files};
    return driver::kSuccess;
}

DRIVER_API int nvrtcDestroyProgram(Program** program) {
    if (!program || !*program) return driver::kInvalidProgram;
    delete *program;
    *program = nullptr;
    return driver::kSuccess;
}

DRIVER_API int nvrtcCompileProgram(Program* program, int count, const char* const* options) {
    if (!program) return driver::kInvalidProgram;
    return compile(*program, driver::translated(count, options)) ? driver::kSuccess
                                                                 : driver::kCompilation;
}

DRIVER_API int nvrtcGetPTXSize(Program* program, size_t* bytes) {
    *bytes = program->image.size() + 1;
    return driver::kSuccess;
}
DRIVER_API int nvrtcGetPTX(Program* program, char* image) {
    memcpy(image, program->image.c_str(), program->image.size() + 1);
    return driver::kSuccess;
}
DRIVER_API int nvrtcGetCUBINSize(Program* program, size_t* bytes) {
    return nvrtcGetPTXSize(program, bytes);
}
DRIVER_API int nvrtcGetCUBIN(Program* program, char* image) { return nvrtcGetPTX(program, image); }
DRIVER_API int nvrtcGetProgramLogSize(Program* program, size_t* bytes) {
    *bytes = program->log.size() + 1;
    return driver::kSuccess;
}
DRIVER_API int nvrtcGetProgramLog(Program* program, char* log) {
    memcpy(log, program->log.c_str(), program->log.size() + 1);
    return driver::kSuccess;
}
