#include "core/catalog/fault_domains.hpp"

namespace holdfast {

FaultDomains::FaultDomains(const Topology& topology) {
  const auto outside = static_cast<Number>(topology.domains().size());
  innermost_.reserve(topology.nodes().size());
  for (const Node& node : topology.nodes()) {
    innermost_.push_back(node.domain.valid() ? node.domain.value() : outside);
  }
  around_.resize(outside + 1U);
  for (Number domain = 0; domain <= outside; ++domain) {
    Number larger = outside;
    for (std::size_t level = kLevels; level-- > 0;) {
      if (domain < outside) {
        const DomainId own = topology.around(DomainId(domain), static_cast<Level>(level));
        if (own.valid()) larger = own.value();
      }
      around_[domain][level] = larger;
    }
  }
}

}  // namespace holdfast
