#include "calib/bench/bench-main.h"
#include "calib/bench/cuda/cuda-device.h"

int main(int argc, char **argv)
{
    return cs_bench_main(&cs_backend_cuda, argc, argv);
}
