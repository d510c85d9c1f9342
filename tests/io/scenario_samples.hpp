// A small machine, a small model and a scenario that fits them, for tests.
#pragma once

#include <string>
#include <vector>

#include "core/io/scenario_update.hpp"
#include "core/topology/topology.hpp"

namespace holdfast::samples {

// `hosts` hosts "h0" ... with `gpus` GPUs "h0.gpu0" ... and one memory "h0.mem" each, all on one
// PCIe switch and one NIC a host; half of the hosts (rounded up) in datacenter "dc0", the rest in
// "dc1".
inline Topology machine(std::uint32_t hosts, std::uint32_t gpus,
                        Bytes gpu_memory = Bytes(1 << 24)) {
  TopologyBuilder builder("sample");
  const DomainId dc0 = builder.add_domain("dc0", Level::Datacenter);
  const DomainId dc1 = builder.add_domain("dc1", Level::Datacenter);
  const Rate rate(1'000'000'000);
  const NodeId core = builder.add_node({"core", NodeKind::Switch, {}, {}, {}, true});
  const auto join = [&](const std::string& name, NodeId a, NodeId b, LinkKind kind) {
    builder.add_link({name, a, b, kind, rate, microseconds(1), {}, true});
  };
  for (std::uint32_t h = 0; h < hosts; ++h) {
    const std::string host = "h" + std::to_string(h);
    const DomainId domain = builder.add_domain(host, Level::Host, h < (hosts + 1) / 2 ? dc0 : dc1);
    const NodeId bus =
        builder.add_node({host + ".bus", NodeKind::PcieSwitch, domain, {}, {}, true});
    for (std::uint32_t g = 0; g < gpus; ++g) {
      const std::string gpu = host + ".gpu" + std::to_string(g);
      join(gpu + ".link", bus,
           builder.add_node({gpu, NodeKind::Gpu, domain, gpu_memory, rate, true}), LinkKind::Pcie);
    }
    join(host + ".mem.link", bus,
         builder.add_node(
             {host + ".mem", NodeKind::HostMemory, domain, Bytes(1U << 30U), rate, true}),
         LinkKind::Memory);
    const NodeId nic = builder.add_node({host + ".nic", NodeKind::Nic, domain, {}, {}, true});
    join(host + ".nic.link", bus, nic, LinkKind::Pcie);
    join(host + ".uplink", nic, core, LinkKind::Fabric);
  }
  return builder.build();
}

// 8 MiB to cut by rows, 8 KiB to cut by columns, and 4 KiB that every shard holds.
inline Manifest model() {
  return Manifest("sample", {{"model.embed_tokens.weight", DType::BF16, {4'096, 1'024}},
                             {"model.layers.0.self_attn.o_proj.weight", DType::BF16, {4, 1'024}},
                             {"model.norm.weight", DType::BF16, {2'048}}});
}

// Complete but for the keys in `rest`, which replace those of the same name.
inline std::string scenario_text(const std::string& groups, const std::string& rest) {
  return "format: 1\n"
         "name: sample\n"
         "topology: machine.yaml\n"
         "model: {preset: llama-3.1-70b}\n"
         "layouts:\n"
         "  tp1: {tensor_parallel: 1}\n"
         "  tp2: {tensor_parallel: 2}\n"
         "  tp4: {tensor_parallel: 4}\n"
         "groups:\n" +
         groups + rest;
}

}  // namespace holdfast::samples
