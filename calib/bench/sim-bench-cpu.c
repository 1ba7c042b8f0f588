#include "calib/bench/bench-main.h"
#include "calib/bench/cpu/cpu-backend.h"

int main(int argc, char **argv)
{
    return cs_bench_main(&cs_backend_cpu, argc, argv);
}
