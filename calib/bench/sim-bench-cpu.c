#include "calib/bench/bench-main.h"

int main(int argc, char **argv)
{
    return cs_bench_main(&cs_backend_cpu, argc, argv);
}
