/* NCCL's description of a node: what NCCL_TOPO_DUMP_FILE writes, and what cloud vendors hand out
 * for NCCL_TOPO_FILE, which often holds only the PCIe tree.
 *
 * Bandwidths are those that NCCL assumes (src/graph/topo.cc and topo.h; GB = 1e9 bytes):
 *   PCIe     lanes * rate / 80, the rate of link_speed in 100 Mbit/s per lane: 15, 30, 60, 120,
 *            240, 480 for 2.5 to 64 GT/s, 60 for anything else; no or 0 lanes count as 16. 12 GB/s for
 *            PCIe 3 x16
 *   NVLink   count * the rate of the compute capability: 18 (6.x), 20 (7.x, 8.0), 12 (8.6), 20.6
 *            (9.x), 40.1 GB/s (10.x on)
 *   sockets  by arch, vendor and model: 6 to 40 GB/s
 *   network  speed in Mbit/s; 10,000 where it is missing, 0 or negative
 *
 * Of the elements these are read: system, cpu, pci, gpu, nvlink, c2c, nic, net; others are skipped.
 * A pci of class 0x03 is a GPU also when it has no gpu element, and one of class 0x02 a NIC also
 * when it has no nic; GPUs are numbered by `dev`, those without one after the others. NVLinks of
 * class 0x068000 lead to the NVSwitches, which together are one crossbar; 0x068001 to the own
 * socket.
 *
 * expat reads it: NCCL's files need neither schemas nor name spaces nor a tree in memory, which is
 * what libxml2 has more (and is ten times as large); expat gives the line of every element, limits
 * entity expansion and loads nothing from outside.
 */
#ifndef CS_TOPOLOGIES_NCCL_XML_H
#define CS_TOPOLOGIES_NCCL_XML_H

#include "topologies/fabric.h"

/* Draws what the text says; the net is the caller's to destroy. *n_nvlinks is how many elements
 * there are for NVLinks (and C2C). When there are none and `nvswitch` is > 0, all GPUs are joined
 * by a crossbar with that many bytes/s for each. Messages are "name:line: ...". */
CS_MUST_CHECK cs_status cs_fabric_from_nccl(const char *name, const char *text, size_t length,
                                            double nvswitch, cs_fabric **net, uint32_t *n_nvlinks,
                                            cs_error *error);

#endif
