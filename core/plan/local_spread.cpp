#include "core/plan/local_spread.hpp"

#include <algorithm>
#include <tuple>

namespace holdfast {

void LocalSpread::add(const ClassHost& host, std::vector<StripeEntry> stripes, Bytes class_bytes) {
  const std::size_t members = host.holders.size() + host.relays.size();
  const bool from_holders = !host.holders.empty();
  const std::size_t copies =
      host.relays.size() + (from_holders ? 1 : 0);  // a relay less: it enters
  Bytes& share = fair_share_[host.host];
  share += class_bytes * (copies - 1) / members;
  limit_ = share;
  // What must come from a holder comes first: it has the least choice.
  const auto enters_at_relay = [&](const StripeEntry& entry) {
    return std::binary_search(
        host.relays.begin(), host.relays.end(), entry.gateway,
        [&](WorkerId a, WorkerId b) { return space_.rank(a) < space_.rank(b); });
  };
  std::stable_partition(stripes.begin(), stripes.end(), enters_at_relay);
  for (std::size_t k = 0; k < stripes.size(); ++k) add_stripe(host, stripes[k], k);
}

void LocalSpread::add_stripe(const ClassHost& host, const StripeEntry& entry, std::size_t turn) {
  std::vector<Attached> attached;
  const auto holder = std::find(host.holders.begin(), host.holders.end(), entry.gateway);
  if (holder != host.holders.end()) {
    for (const WorkerId w : host.holders) attached.push_back({w, w == entry.gateway ? 0U : 1U});
  } else if (!host.holders.empty()) {
    const WorkerId source =
        *std::min_element(host.holders.begin(), host.holders.end(), [&](WorkerId a, WorkerId b) {
          return std::tuple(sent_[a.index()], space_.rank(a)) <
                 std::tuple(sent_[b.index()], space_.rank(b));
        });
    attached.push_back({source, 0});
    attach(entry, attached, 0, entry.gateway);
    attached.erase(attached.begin());
  } else {
    attached.push_back({entry.gateway, 0});
  }
  // Each stripe starts at another relay, so that what the gateways cannot serve themselves does not
  // always fall to the same ones.
  const std::size_t n = host.relays.size();
  for (std::size_t i = 0; i < n; ++i) {
    const WorkerId child = host.relays[(turn + i) % n];
    if (child == entry.gateway) continue;
    attach(entry, attached, best_parent(attached, entry), child);
  }
}

void LocalSpread::attach(const StripeEntry& entry, std::vector<Attached>& attached,
                         std::size_t parent, WorkerId child) {
  const WorkerId source = attached[parent].worker;
  Path path = paths_.lay(source, child, entry.bytes);
  if (space_.host(source) == space_.host(child)) path.stream = entry.strand;
  builder_.add_edge(entry.stripe, child, source, path);
  sent_[source.index()] += entry.bytes;
  attached.push_back({child, attached[parent].depth + 1});
}

std::size_t LocalSpread::best_parent(const std::vector<Attached>& attached,
                                     const StripeEntry& entry) const {
  // Stripes of a class differ by a block: half a stripe of slack keeps that from changing trees.
  const auto cost = [&](const Attached& a) {
    const Bytes after = sent_[a.worker.index()] + entry.bytes;
    const bool over = after > limit_ + entry.bytes / 2;
    return std::tuple(over, over ? 0U : a.depth, after, space_.rank(a.worker));
  };
  std::size_t best = 0;
  for (std::size_t i = 1; i < attached.size(); ++i) {
    if (cost(attached[i]) < cost(attached[best])) best = i;
  }
  return best;
}

}  // namespace holdfast
