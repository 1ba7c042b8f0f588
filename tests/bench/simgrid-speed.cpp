// The work of our benchmarks in SimGrid: simgrid-speed 1f1b STAGES MICRO_BATCHES, or
// simgrid-speed ring HOSTS drift|full|strided|random STEPS (bench-network.c has the orders)
//
// An actor per stage or rank, messages by mailboxes, max-min sharing (CM02) without factors of
// latency or bandwidth, cross-traffic or a window. A 1F1B step runs where nothing is shared: one link
// from each stage to the next, one back. Prints the CPU time of the simulation, without building it,
// in s, and the end of the last message or computation.
#include <simgrid/s4u.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace sg4 = simgrid::s4u;

static double cpu_seconds()
{
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// ---- a 1F1B step: 1 ms forward and 2 ms backward on average, 10 MB handed on ----

struct Stage {
    unsigned number, stages, micro_batches;
    double forward, backward; // flop of a host of 1 Gflop/s

    static sg4::Mailbox *box(const char *kind, unsigned to)
    {
        return sg4::Mailbox::by_name(kind + std::to_string(to));
    }
    void send(const char *kind, unsigned to) const
    {
        static int payload;
        box(kind, to)->put_init(&payload, 10000000)->detach();
    }
    void run_forward() const
    {
        if (number > 0)
            box("activation", number)->get<int>();
        sg4::this_actor::execute(forward);
        if (number + 1 < stages)
            send("activation", number + 1);
    }
    void run_backward() const
    {
        if (number + 1 < stages)
            box("gradient", number)->get<int>();
        sg4::this_actor::execute(backward);
        if (number > 0)
            send("gradient", number - 1);
    }
    void operator()() const
    {
        const unsigned ahead = std::min(stages - number, micro_batches);
        for (unsigned i = 0; i < ahead; i++)
            run_forward();
        for (unsigned i = 0; i < micro_batches; i++) {
            run_backward();
            if (i + ahead < micro_batches)
                run_forward();
        }
    }
};

static void build_step(unsigned stages, unsigned micro_batches)
{
    std::mt19937 random(1);
    std::uniform_real_distribution<double> around(0.8e6, 1.2e6);
    auto *zone = sg4::create_full_zone("zone");
    std::vector<sg4::Host *> hosts;
    for (unsigned s = 0; s < stages; s++)
        hosts.push_back(zone->create_host("stage" + std::to_string(s), 1e9)->seal());
    for (unsigned s = 0; s + 1 < stages; s++)
        for (unsigned back = 0; back < 2; back++) {
            auto *link = zone->create_link("link" + std::to_string(2 * s + back), 150e9);
            link->set_latency(3e-6)->seal();
            zone->add_route(hosts[s + back]->get_netpoint(), hosts[s + 1 - back]->get_netpoint(),
                            nullptr, nullptr, {sg4::LinkInRoute(link)}, false);
        }
    zone->seal();
    for (unsigned s = 0; s < stages; s++) {
        const double forward = around(random), backward = around(random) + around(random);
        sg4::Actor::create("stage" + std::to_string(s), hosts[s],
                           Stage{s, stages, micro_batches, forward, backward});
    }
}

// ---- a ring all-reduce of 100 MB on a two-level fat tree ----

struct Rank {
    unsigned number, n, steps;
    const std::vector<double> *chunks;

    void operator()() const
    {
        static int payload;
        auto *to = sg4::Mailbox::by_name("rank" + std::to_string((number + 1) % n));
        auto *from = sg4::Mailbox::by_name("rank" + std::to_string(number));
        for (unsigned step = 0; step < steps; step++) {
            int *got = nullptr;
            const double bytes = (*chunks)[(number + 2 * n - step % n) % n];
            sg4::CommPtr sent = to->put_async(&payload, static_cast<uint64_t>(bytes));
            from->get_async<int>(&got)->wait();
            sent->wait();
        }
    }
};

static std::vector<unsigned> place_ranks(const std::string &order, unsigned n, std::mt19937 &random)
{
    const unsigned stride = order == "strided" ? 48 : 1;
    std::vector<unsigned> hosts;
    for (unsigned first = 0; first < stride; first++)
        for (unsigned host = first; host < n; host += stride)
            hosts.push_back(host);
    if (order == "drift" || order == "random")
        std::shuffle(hosts.begin(), hosts.end(), random);
    return hosts;
}

// Leaves of as many hosts, and of as many links up, as ours.
static std::vector<sg4::Host *> build_tree(const std::string &order, unsigned n)
{
    unsigned down = 32, up = 32;
    if (order == "drift") {
        down = n <= 896 ? 28 : 56;
        up = n <= 896 ? 4 : 8;
    } else if (order == "strided") {
        down = 48;
        up = 16;
    }
    std::vector<sg4::Host *> hosts;
    const sg4::FatTreeParams shape(2, {down, (n + down - 1) / down}, {1, up}, {1, 1});
    const sg4::ClusterCallbacks callbacks(
        [&hosts](sg4::NetZone *zone, const std::vector<unsigned long> &, unsigned long id) {
            hosts.push_back(zone->create_host("host" + std::to_string(id), 1e9)->seal());
            return std::make_pair(hosts.back()->get_netpoint(),
                                  static_cast<simgrid::kernel::routing::NetPoint *>(nullptr));
        });
    sg4::create_fatTree_zone("tree", nullptr, shape, callbacks, 12.5e9, 0.5e-6,
                             sg4::Link::SharingPolicy::SPLITDUPLEX)
        ->seal();
    return hosts;
}

static void build_ring(unsigned n, const std::string &order, unsigned steps)
{
    static std::vector<double> chunks;
    std::mt19937 random(1);
    std::uniform_int_distribution<unsigned> bytes(1, 200000000 / n);
    for (unsigned i = 0; i < n; i++)
        chunks.push_back(order == "drift" ? bytes(random) : 100000000 / n);
    const std::vector<sg4::Host *> hosts = build_tree(order, n);
    const std::vector<unsigned> places = place_ranks(order, n, random);
    for (unsigned rank = 0; rank < n; rank++)
        sg4::Actor::create("rank" + std::to_string(rank), hosts[places[rank]],
                           Rank{rank, n, steps, &chunks});
}

int main(int argc, char **argv)
{
    sg4::Engine engine(&argc, argv);
    for (const char *option :
         {"network/model:CM02", "network/crosstraffic:0", "network/latency-factor:1",
          "network/bandwidth-factor:1", "network/weight-S:0", "network/TCP-gamma:0"})
        sg4::Engine::set_config(option);
    const std::string work = argc > 1 ? argv[1] : "";
    if (work == "1f1b" && argc == 4) {
        build_step(std::strtoul(argv[2], nullptr, 10), std::strtoul(argv[3], nullptr, 10));
    } else if (work == "ring" && argc == 5) {
        build_ring(std::strtoul(argv[2], nullptr, 10), argv[3], std::strtoul(argv[4], nullptr, 10));
    } else {
        std::fprintf(stderr, "usage: simgrid-speed 1f1b STAGES MICRO_BATCHES\n"
                             "       simgrid-speed ring HOSTS ORDER STEPS\n");
        return 2;
    }
    const double start = cpu_seconds();
    engine.run();
    std::printf("%.6f s, end %.9f\n", cpu_seconds() - start, sg4::Engine::get_clock());
    return 0;
}
