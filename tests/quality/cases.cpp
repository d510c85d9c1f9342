#include "tests/quality/cases.hpp"

#include <fmt/format.h>

namespace holdfast::quality {
namespace {

constexpr const char* kLarge = "llama-3.1-70b";
constexpr const char* kMedium = "qwen2.5-32b";
constexpr std::uint32_t kGpusPerHost = 8;

std::string hosts(const std::string& list) {
  return "{hosts: [" + list + "]}";
}
std::string gpus(const std::string& list) {
  return "{gpus: [" + list + "]}";
}

struct Cluster {
  const char* label;
  const char* file;
  const char* prefix;     // of the first datacenter's hosts
  std::uint32_t hosts;    // of the first datacenter
  const char* elsewhere;  // patterns of the hosts of further datacenters, each after a comma
  std::uint32_t all_hosts;
};

constexpr Cluster kClusters[] = {
    {"16 hosts", "h100-16-hosts", "", 16, "", 16},
    {"128 hosts", "rail-128-hosts-200g", "", 128, "", 128},
    {"2 datacenters", "two-datacenters", "dc0.", 16, "dc1.h*", 32},
    {"32 hosts fat tree", "h100-32-hosts", "", 32, "", 32},
    {"128 hosts fat tree", "h100-128-hosts", "", 128, "", 128},
    {"cloud 4 NICs", "cloud-4-nics", "", 32, "", 32},
    {"mixed H100 A100", "mixed-h100-a100", "", 32, "", 32},
    {"degraded rail", "degraded-rail", "", 32, "", 32},
    {"16:1", "oversubscribed-16-1", "", 128, "", 128},
    {"3 datacenters", "three-datacenters", "dc0.", 32, "dc[1-2].h*", 56},
    {"Llama 3 pods", "llama3-2-pods", "", 768, "", 768},
    {"Clos 16,384", "clos-16384-gpus", "", 2048, "", 2048},
};

std::string joined(const std::string& first, const std::string& second) {
  return second.empty() ? first : first + ", " + second;
}

void add_cluster(std::vector<Case>& all, const Cluster& c) {
  const auto add = [&](const char* what, const char* model, std::uint32_t tp,
                       const std::string& holders, const std::string& receivers) {
    all.push_back({fmt::format("{}, {}", c.label, what), c.file, model, tp, holders, receivers,
                   c.all_hosts * kGpusPerHost});
  };
  const std::string p = c.prefix;
  const std::string elsewhere = c.elsewhere;
  const std::string far_hosts = elsewhere.empty() ? "" : "'" + elsewhere + "'";
  const std::string far_gpus = elsewhere.empty() ? "" : "'" + elsewhere + ".gpu*'";
  const auto range = [&](std::uint32_t first) {
    return fmt::format("'{}h[{}-{}]'", p, first, c.hosts - 1);
  };
  const auto gpu_range = [&](std::uint32_t first) {
    return fmt::format("'{}h[{}-{}].gpu*'", p, first, c.hosts - 1);
  };
  add("70B TP=8, 1 holder", kLarge, 8, hosts("'" + p + "h0'"), hosts(joined(range(1), far_hosts)));
  add("70B TP=8, 4 holders", kLarge, 8, hosts(fmt::format("'{}h[0-3]'", p)),
      hosts(joined(range(4), far_hosts)));
  add("32B TP=1, 1 holder", kMedium, 1, gpus("'" + p + "h0.gpu0'"),
      gpus(joined(fmt::format("'{}h0.gpu[1-7]', {}", p, gpu_range(1)), far_gpus)));
  add("32B TP=1, 4 holders packed", kMedium, 1, gpus(fmt::format("'{}h0.gpu[0-3]'", p)),
      gpus(joined(fmt::format("'{}h0.gpu[4-7]', {}", p, gpu_range(1)), far_gpus)));
  add("32B TP=1, 4 holders spread", kMedium, 1, gpus(fmt::format("'{}h[0-3].gpu0'", p)),
      gpus(joined(fmt::format("'{}h[0-3].gpu[1-7]', {}", p, gpu_range(4)), far_gpus)));
}

}  // namespace

std::vector<Case> shipped_cases() {
  std::vector<Case> all;
  for (const Cluster& c : kClusters) add_cluster(all, c);
  all.push_back({"1 host, 32B TP=1, 1 holder", "h100-1-host", kMedium, 1, gpus("h0.gpu0"),
                 gpus("'h0.gpu[1-7]'"), kGpusPerHost});
  all.push_back({"1 host, 32B TP=1, 4 holders", "h100-1-host", kMedium, 1, gpus("'h0.gpu[0-3]'"),
                 gpus("'h0.gpu[4-7]'"), kGpusPerHost});
  all.push_back({"1 host, 70B TP=8, from host memory", "h100-1-host", kLarge, 8,
                 "{host_memory: [h0.mem]}", hosts("h0"), kGpusPerHost});
  return all;
}

std::string scenario_text(const Case& c, std::uint32_t blocks, const std::string& options) {
  return fmt::format(
      "format: 1\nname: quality\nteaches: plan quality\ntopology: {}.yaml\n"
      "model: {{preset: {}}}\nlayouts:\n  tp: {{tensor_parallel: {}}}\n"
      "groups:\n  holder: {{place: {}, layout: tp, role: trainer}}\n"
      "  receiver: {{place: {}, layout: tp, role: rollout}}\n"
      "holders: [holder]\nupdate: {{receivers: [receiver], destination: in_place}}\n"
      "options: {{blocks_per_eighth: {}{}{}}}\nverify: true\n",
      c.topology, c.model, c.tensor_parallel, c.holders, c.receivers, blocks,
      options.empty() ? "" : ", ", options);
}

}  // namespace holdfast::quality
