#include "core/nearest.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace holdfast {
namespace {

using Words = std::vector<std::string>;

TEST(Nearest, TheEditsCount) {
  EXPECT_EQ(nearest("topolgy", Words{"model", "topology"}), "topology");    // insert
  EXPECT_EQ(nearest("topollogy", Words{"model", "topology"}), "topology");  // delete
  EXPECT_EQ(nearest("tobology", Words{"model", "topology"}), "topology");   // replace
  EXPECT_EQ(nearest("ab", Words{"xb", "ba"}), "xb");  // both at one: the earlier
  EXPECT_EQ(nearest("ab", Words{"ba"}), "ba");        // a swap is one edit
  EXPECT_EQ(nearest("seed", Words{"seed"}), "seed");
}

TEST(Nearest, NotFartherThanHalfOfTheWord) {
  EXPECT_EQ(nearest("abcd", Words{"abxy"}), "abxy");
  EXPECT_EQ(nearest("abcd", Words{"axyz"}), std::nullopt);
  EXPECT_EQ(nearest("abc", Words{"axy"}), std::nullopt);
  EXPECT_EQ(nearest("a", Words{"b"}), std::nullopt);
  EXPECT_EQ(nearest("abcd", Words{"abcdefg"}), std::nullopt);
  EXPECT_EQ(nearest("", Words{"a"}), std::nullopt);
  EXPECT_EQ(nearest("abcd", Words{}), std::nullopt);
  EXPECT_EQ(nearest(std::string(100'000, 'a'), Words{std::string(100'000, 'a')}), std::nullopt);
}

// Oracle: all words within d edits, made by applying every edit to every word within d - 1. Edits
// that overlap a swap are not made by the distance; with one edit they cannot be.
TEST(Nearest, OneEditIsOneEdit) {
  std::mt19937_64 random(7);
  RecordProperty("seed", "7");
  for (int i = 0; i < 200; ++i) {
    std::string word;
    for (int k = 0; k < 5; ++k) word += static_cast<char>('a' + random() % 3);
    std::set<std::string> near{word};
    for (std::size_t at = 0; at <= word.size(); ++at) {
      for (const char c : {'a', 'b', 'c', 'd'}) {
        near.insert(word.substr(0, at) + c + word.substr(at));
        if (at < word.size()) near.insert(word.substr(0, at) + c + word.substr(at + 1));
      }
      if (at < word.size()) near.insert(word.substr(0, at) + word.substr(at + 1));
      if (at + 1 < word.size()) {
        std::string swapped = word;
        std::swap(swapped[at], swapped[at + 1]);
        near.insert(swapped);
      }
    }
    // Something two edits away must lose against each of them, in whatever order.
    const std::string two_away = word + "zz";
    for (const std::string& other : near) {
      EXPECT_EQ(nearest(word, Words{two_away, other}), other);
    }
    EXPECT_EQ(nearest(word, Words{two_away}), two_away);
  }
}

TEST(Suggestion, PrefersWhatBeginsWithTheWord) {
  const Words presets{"qwen2.5-32b", "qwen3-30b-a3b-instruct", "qwen3-30b-a3b"};
  EXPECT_EQ(suggestion("qwen3-30b", presets), "; did you mean 'qwen3-30b-a3b'?");
  EXPECT_EQ(suggestion("qwen2.5-30b", presets), "; did you mean 'qwen2.5-32b'?");
  EXPECT_EQ(suggestion("qw", presets, 1), "; known: qwen2.5-32b, ...");
}

TEST(Suggestion, NamesTheNearOrTheKnown) {
  EXPECT_EQ(suggestion("modle", Words{"model", "seed"}), "; did you mean 'model'?");
  EXPECT_EQ(suggestion("xxxxxx", Words{"model", "seed"}), "; known: model, seed");
  EXPECT_EQ(suggestion("xxxxxx", Words{"model", "seed", "policy"}, 2), "; known: model, seed, ...");
  EXPECT_EQ(suggestion("xxxxxx", Words{}), "");
}

}  // namespace
}  // namespace holdfast
