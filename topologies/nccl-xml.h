/* NCCL's description of a node, as written by NCCL_TOPO_DUMP_FILE or provided by cloud vendors for
 * NCCL_TOPO_FILE (which often has only the PCIe tree), and RCCL's for AMD GPUs (version 2).
 *
 * Bandwidths are those that NCCL and RCCL assume (src/graph/topo.cc and topo.h; GB = 1e9 bytes):
 *   PCIe     lanes * rate / 80, with the rate of link_speed in 100 Mbit/s per lane: 15, 30, 60,
 *            120, 240, 480 for 2.5 to 64 GT/s, 60 for anything else; missing or 0 lanes count as
 *            16. 12 GB/s for PCIe 3 x16
 *   NVLink   count * the rate of the compute capability: 18 (6.x), 20 (7.x, 8.0), 12 (8.6), 20.6
 *            (9.x), 40.1 GB/s (from 10.x)
 *   xGMI     count * the rate of the architecture: 36 (gfx90a), 48 (gfx94x, gfx95x), else 24 GB/s
 *   C2C      count * bw, in MB/s
 *   sockets  by arch, vendor and model: 6 to 40 GB/s
 *   network  speed in Mbit/s; 10,000 if missing, 0 or negative
 *
 * The elements system, cpu, pci, gpu, nvlink, xgmi, c2c, nic and net are read, others are ignored.
 * A pci of class 0x03 or 0x12 is a GPU even without a gpu element, and a pci of class 0x02 is a NIC
 * even without a nic element. GPUs are numbered by `dev`; GPUs without it come last. Ports of one
 * card (bus ids equal except for the function) are one NIC with several networks.
 *
 * A link of a GPU leads to the GPU whose busid is its target, to its own socket if its tclass is
 * 0x068001, and otherwise to the NVSwitches, which are modelled as one crossbar. Links to GPUs that
 * the file lacks (a job that used some GPUs of a node) are ignored. Links of a GPU to one place are
 * merged. If cpu elements differ in host_hash (NVLink across nodes), sockets are joined only within
 * a host.
 *
 * The parser is expat: NCCL's files need neither schemas nor name spaces nor a tree in memory, for
 * which libxml2 would be ten times as large. expat reports the line of every element, limits entity
 * expansion and loads nothing from outside.
 */
#ifndef CS_TOPOLOGIES_NCCL_XML_H
#define CS_TOPOLOGIES_NCCL_XML_H

#include "topologies/fabric.h"

typedef struct cs_fabric_nccl {
    bool has_links;     /* the file has NVLinks or xGMI links */
    uint32_t n_missing; /* NVLinks and xGMI links to GPUs that the file lacks */
} cs_fabric_nccl;

/* Builds the described network; the caller destroys it. If the file has neither NVLinks nor xGMI
 * links and `nvswitch` is > 0, a crossbar with that many bytes/s per GPU joins all GPUs. Messages
 * begin with "name:line: ". */
CS_MUST_CHECK cs_status cs_fabric_from_nccl(const char *name, const char *text, size_t length,
                                            double nvswitch, cs_fabric **net, cs_fabric_nccl *found,
                                            cs_error *error);

#endif
