// "Did you mean ...": the known word nearest to what was written.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

// The candidate of least edit distance (insert, delete, replace, swap of neighbours), or nothing
// where even that one is farther than half of the word. Ties go to the earlier candidate.
// O(total length of the candidates x length of the word).
[[nodiscard]] std::optional<std::string> nearest(std::string_view word,
                                                 const std::vector<std::string>& candidates);

// "; did you mean 'x'?": the shortest candidate that begins with the word (of three letters or
// more), else the nearest; without either "; known: a, b, c" (at most `most` of them).
[[nodiscard]] std::string suggestion(std::string_view word,
                                     const std::vector<std::string>& candidates,
                                     std::size_t most = 20);

}  // namespace holdfast
