// Small topology files for tests of their reader, whole and spoilt.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <string>

#include "core/error.hpp"
#include "core/io/topology_reader.hpp"

namespace holdfast::topology_texts {

// Two GPUs and two NICs on one socket.
inline constexpr const char* kHosts = R"(format: 1
name: t
hosts:
  small:
    gpus: {count: 2, memory: 80GB, digest_rate: 2TB/s}
    nics: {count: 2, rate: 400Gbps}
    memory: {size: 1TB, rate: 200GB/s, latency: 100ns, digest_rate: 100GB/s}
    pcie: {rate: 55GB/s, latency: 250ns}
)";

// The same without NICs.
inline constexpr const char* kNoNics = R"(format: 1
name: t
hosts:
  small:
    gpus: {count: 2, memory: 80GB, digest_rate: 2TB/s}
    memory: {size: 1TB, rate: 200GB/s, latency: 100ns, digest_rate: 100GB/s}
    pcie: {rate: 55GB/s, latency: 250ns}
)";

inline constexpr const char* kPlain = R"(format: 1
name: t
nodes:
  - {name: s0, kind: switch}
  - {name: s1, kind: spine}
links:
  - {a: s0, b: s1, kind: fabric, capacity: 1GB/s, latency: 1us}
)";

// Parses `text` without its one '$', which marks where the error must be.
inline void expect_refused(std::string text, ErrorCode code, const std::string& part) {
  SCOPED_TRACE(text);
  const std::size_t mark = text.find('$');
  ASSERT_NE(mark, std::string::npos);
  text.erase(mark, 1);
  const std::string before = text.substr(0, mark);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t start = before.rfind('\n') == std::string::npos ? 0 : before.rfind('\n') + 1;
  const std::size_t column = mark - start + 1;
  try {
    (void)parse_topology(text, "t.yaml");
    ADD_FAILURE() << "accepted; expected: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_EQ(error.place().file, "t.yaml");
    EXPECT_EQ(error.place().line, line) << error.what();
    EXPECT_EQ(error.place().column, static_cast<int>(column)) << error.what();
    EXPECT_THAT(error.what(), testing::HasSubstr(part));
  }
}

inline std::string cluster(const std::string& rest) {
  return kHosts + ("cluster:\n" + rest);
}

// Replaces the first `from` in `text`.
inline std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

}  // namespace holdfast::topology_texts
