#include "core/io/scenario_baselines.hpp"

#include "core/io/scenario_detail.hpp"

namespace holdfast {
namespace {

constexpr std::int64_t kMostChannels = 64;

NcclBaseline read_nccl(const YamlValue& value) {
  NcclBaseline nccl;
  nccl.place = value.place();
  YamlMap map = value.map();
  if (const auto time = map.find("init_time")) nccl.init_time = time->time(Zero::Allowed);
  if (const auto algorithm = map.find("algorithm")) {
    nccl.algorithm =
        algorithm->one_of<NcclAlgorithm>({{to_string(NcclAlgorithm::Ring), NcclAlgorithm::Ring},
                                          {to_string(NcclAlgorithm::Tree), NcclAlgorithm::Tree}});
  }
  if (const auto channels = map.find("channels")) {
    nccl.channels = static_cast<std::uint32_t>(channels->integer(1, kMostChannels));
  }
  map.finish();
  return nccl;
}

UcxBaseline read_ucx(const YamlValue& value) {
  UcxBaseline ucx;
  ucx.place = value.place();
  YamlMap map = value.map();
  if (const auto time = map.find("connect_time")) ucx.connect_time = time->time(Zero::Allowed);
  map.finish();
  return ucx;
}

StoreBaseline read_store(const YamlValue& value) {
  StoreBaseline store;
  store.place = value.place();
  YamlMap map = value.map();
  if (const auto place = map.find("place")) {
    YamlMap where = place->map();
    store.hosts = read_patterns(where.require("host_memory"));
    where.finish();
  }
  if (const auto bandwidth = map.find("bandwidth"))
    store.bandwidth = bandwidth->rate(Zero::Refused);
  if (const auto time = map.find("put_time")) store.put_time = time->time(Zero::Allowed);
  if (const auto time = map.find("get_time")) store.get_time = time->time(Zero::Allowed);
  map.finish();
  return store;
}

}  // namespace

namespace scenario_detail {

ScenarioBaselines read_baselines(const YamlValue& value) {
  ScenarioBaselines baselines;
  YamlMap map = value.map();
  const auto nccl = map.find("nccl");
  const auto ucx = map.find("ucx");
  const auto store = map.find("store");
  map.finish();
  if (!nccl && !ucx && !store) {
    value.refuse(ErrorCode::BadValue, "write 'nccl', 'ucx' or 'store', or leave the key away");
  }
  if (nccl) baselines.nccl = read_nccl(*nccl);
  if (ucx) baselines.ucx = read_ucx(*ucx);
  if (store) baselines.store = read_store(*store);
  return baselines;
}

}  // namespace scenario_detail
}  // namespace holdfast
