// Runs a case of simgrid-cases.c, from standard input, in SimGrid, and prints the largest relative
// difference of an end. The model is plain max-min: CM02 without cross-traffic, without factors of
// latency or bandwidth and without a window; links have no latency, so that all flows weigh the same.
#include <simgrid/s4u.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace sg4 = simgrid::s4u;

struct Flow {
    unsigned from, to;
    double bytes, start, end, got = -1;
    std::vector<unsigned> links;
};

static void read_case(std::vector<double> &links, std::vector<Flow> &flows)
{
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream in(line);
        std::string word;
        in >> word;
        if (word == "link") {
            in >> word;
            links.push_back(std::stod(word));
        } else if (word == "flow") {
            Flow flow;
            in >> flow.from >> flow.to >> flow.bytes >> flow.start >> flow.end;
            for (unsigned link; in >> link;)
                flow.links.push_back(link);
            flows.push_back(flow);
        }
    }
}

// Every flow gets two hosts of its own, which are joined by its links alone.
static void build(const std::vector<double> &rates, std::vector<Flow> &flows)
{
    auto *zone = sg4::create_full_zone("zone");
    std::vector<sg4::Link *> links;
    for (std::size_t i = 0; i < rates.size(); i++)
        links.push_back(zone->create_link("link" + std::to_string(i), rates[i])->set_latency(0)->seal());
    for (std::size_t i = 0; i < flows.size(); i++) {
        auto *from = zone->create_host("from" + std::to_string(i), 1e9)->seal();
        auto *to = zone->create_host("to" + std::to_string(i), 1e9)->seal();
        std::vector<sg4::LinkInRoute> route;
        for (unsigned link : flows[i].links)
            route.emplace_back(links[link]);
        zone->add_route(from->get_netpoint(), to->get_netpoint(), nullptr, nullptr, route, false);
        Flow *flow = &flows[i];
        sg4::Actor::create("flow" + std::to_string(i), from, [from, to, flow]() {
            if (flow->start > 0)
                sg4::this_actor::sleep_until(flow->start);
            sg4::Comm::sendto(from, to, flow->bytes);
            flow->got = sg4::Engine::get_clock();
        });
    }
    zone->seal();
}

int main(int argc, char **argv)
{
    std::vector<double> links;
    std::vector<Flow> flows;
    sg4::Engine engine(&argc, argv);
    for (const char *option :
         {"network/model:CM02", "network/crosstraffic:0", "network/latency-factor:1",
          "network/bandwidth-factor:1", "network/weight-S:0", "network/TCP-gamma:0",
          "maxmin/precision:1e-9", "surf/precision:1e-12"})
        sg4::Engine::set_config(option);
    read_case(links, flows);
    build(links, flows);
    engine.run();
    double worst = 0;
    for (const Flow &flow : flows)
        worst = std::max(worst, std::fabs(flow.got - flow.end) / flow.end);
    std::printf("%zu flows, largest relative difference %.3g\n", flows.size(), worst);
    return 0;
}
