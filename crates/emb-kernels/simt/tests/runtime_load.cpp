// Shared objects with kernels, loaded and unloaded while the program runs. run.sh builds them and
// names their folder in SIMT_LOADED.
#include "check.h"

extern "C" __global__ void answer(int* out) { *out = 41; }
SIMT_REGISTER(answer)

static int launch_by_name(const char* name, void* argument) {
    void* parameters[] = {&argument};
    return simt_launch(name, 1, 1, 1, 32, 1, 1, 0, parameters);
}

TEST(a_loaded_object_adds_kernels_and_hides_older_ones_until_it_goes) {
    const char* folder = getenv("SIMT_LOADED");
    if (!folder) {
        fprintf(stderr, "skipped: SIMT_LOADED is not set, run.sh does\n");
        return;
    }
    check::Buffer<float> values(32, 2.0f);
    check::Buffer<int> out(1);
    EXPECT_EQUAL(launch_by_name("added_triple", values.data()), kSimtNotFound);
    for (int round = 0; round < 2; ++round) {
        void* object = simt_load((std::string(folder) + "/added.so").c_str());
        EXPECT(object != nullptr);
        if (!object) {
            fprintf(stderr, "%s\n", simt_error());
            return;
        }
        EXPECT_EQUAL(launch_by_name("added_triple", values.data()), kSimtSuccess);
        EXPECT_EQUAL(values[7], round == 0 ? 6.0f : 18.0f);
        void* parameter = out.data();
        void* parameters[] = {&parameter};
        simt_launch("answer", 1, 1, 1, 1, 1, 1, 0, parameters);
        EXPECT_EQUAL(out[0], 42);
        simt_unload(object);
        EXPECT_EQUAL(launch_by_name("added_triple", values.data()), kSimtNotFound);
        simt_launch("answer", 1, 1, 1, 1, 1, 1, 0, parameters);
        EXPECT_EQUAL(out[0], 41);
    }
}

TEST(an_object_that_does_not_load_says_why) {
    EXPECT(simt_load("/nowhere/rule.so") == nullptr);
    EXPECT(strstr(simt_error(), "/nowhere/rule.so"));
}

CHECK_MAIN
