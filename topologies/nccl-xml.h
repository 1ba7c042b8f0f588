/* NCCL's description of a node: what NCCL_TOPO_DUMP_FILE writes, and what cloud vendors hand out
 * for NCCL_TOPO_FILE, which often holds only the PCIe tree; and RCCL's for AMD GPUs (version 2).
 *
 * Bandwidths are those that NCCL and RCCL assume (src/graph/topo.cc and topo.h; GB = 1e9 bytes):
 *   PCIe     lanes * rate / 80, the rate of link_speed in 100 Mbit/s per lane: 15, 30, 60, 120,
 *            240, 480 for 2.5 to 64 GT/s, 60 for anything else; no or 0 lanes count as 16. 12 GB/s
 *            for PCIe 3 x16
 *   NVLink   count * the rate of the compute capability: 18 (6.x), 20 (7.x, 8.0), 12 (8.6), 20.6
 *            (9.x), 40.1 GB/s (10.x on)
 *   xGMI     count * the rate of the architecture: 36 (gfx90a), 48 (gfx94x, gfx95x), else 24 GB/s
 *   C2C      count * bw, in MB/s
 *   sockets  by arch, vendor and model: 6 to 40 GB/s
 *   network  speed in Mbit/s; 10,000 where it is missing, 0 or negative
 *
 * Of the elements these are read: system, cpu, pci, gpu, nvlink, xgmi, c2c, nic, net; others are
 * skipped. A pci of class 0x03 or 0x12 is a GPU also when it has no gpu element, and one of class
 * 0x02 a NIC also when it has no nic; GPUs are numbered by `dev`, those without one after the
 * others. Ports of one card (bus ids equal except for the function) are one NIC with several
 * networks.
 *
 * A link of a GPU leads to the GPU whose busid is its target, to the own socket if its tclass is
 * 0x068001, and else to the NVSwitches, which together are one crossbar; a link to a GPU that the
 * file lacks (a job that used some GPUs of a node) is left out. Links of a GPU that lead to the same
 * place are added. Where cpu elements have different host_hash (NVLink across nodes), sockets are
 * joined within a host only.
 *
 * expat reads it: NCCL's files need neither schemas nor name spaces nor a tree in memory, which is
 * what libxml2 has more (and is ten times as large); expat gives the line of every element, limits
 * entity expansion and loads nothing from outside.
 */
#ifndef CS_TOPOLOGIES_NCCL_XML_H
#define CS_TOPOLOGIES_NCCL_XML_H

#include "topologies/fabric.h"

typedef struct cs_fabric_nccl {
    bool has_links;     /* NVLink or xGMI */
    uint32_t n_missing; /* NVLinks and xGMI links to GPUs that the file lacks */
} cs_fabric_nccl;

/* Draws what the text says; the net is the caller's to destroy. If the file has neither NVLinks
 * nor xGMI links and `nvswitch` is > 0, all GPUs are joined by a crossbar with that many bytes/s for each. Messages are
 * "name:line: ...". */
CS_MUST_CHECK cs_status cs_fabric_from_nccl(const char *name, const char *text, size_t length,
                                            double nvswitch, cs_fabric **net, cs_fabric_nccl *found,
                                            cs_error *error);

#endif
