// A set of responses, in the order of their ids: a bit for each from the oldest word in use to the
// youngest. Ids grow and responses leave about as they came, so that this is a few hundred words;
// nothing is allocated per response.
#pragma once

#include "core/ids.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace temper::orchestrator {

class ResponseSet {
 public:
  class Iterator {
   public:
    ResponseId operator*() const {
      return ResponseId((set_->base_ + word_) * kBits +
                        static_cast<std::uint64_t>(std::countr_zero(left_)));
    }
    Iterator& operator++() {
      left_ &= left_ - 1;
      skip_empty();
      return *this;
    }
    bool operator==(const Iterator& o) const { return word_ == o.word_ && left_ == o.left_; }

   private:
    friend class ResponseSet;
    Iterator(const ResponseSet& set, std::size_t word)
        : set_(&set), word_(word), left_(word < set.words_.size() ? set.words_[word] : 0) {
      skip_empty();
    }
    void skip_empty() {
      while (left_ == 0 && word_ < set_->words_.size()) {
        ++word_;
        left_ = word_ < set_->words_.size() ? set_->words_[word_] : 0;
      }
    }
    const ResponseSet* set_;
    std::size_t word_;
    std::uint64_t left_;  ///< Bits of the word that are still to come.
  };

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  bool contains(ResponseId r) const {
    const std::uint64_t at = r.value() / kBits - base_;  // wraps for one before all
    return at < words_.size() && (words_[at] & bit(r)) != 0;
  }
  void insert(ResponseId r) {
    if (contains(r))
      return;
    const std::size_t at = place_of(r);
    words_[at] |= bit(r);
    first_ = size_++ == 0 ? at : std::min(first_, at);
  }
  void erase(ResponseId r) {
    if (!contains(r))
      return;
    words_[r.value() / kBits - base_] &= ~bit(r);
    --size_;
    while (size_ > 0 && words_[first_] == 0)
      ++first_;
  }
  void clear() {
    words_.clear();
    size_ = 0;
  }
  Iterator begin() const { return {*this, empty() ? words_.size() : first_}; }
  Iterator end() const { return {*this, words_.size()}; }

 private:
  static constexpr std::uint64_t kBits = 64;
  static std::uint64_t bit(ResponseId r) { return std::uint64_t{1} << (r.value() % kBits); }

  /// Makes room for the response.
  std::size_t place_of(ResponseId r) {
    const std::uint64_t word = r.value() / kBits;
    if (empty()) {
      words_.assign(1, 0);
      base_ = word;
    } else if (word < base_) {
      words_.insert(words_.begin(), base_ - word, 0);
      first_ += base_ - word;
      base_ = word;
    } else if (word - base_ >= words_.size()) {
      if (first_ > words_.size() / 2) {
        words_.erase(words_.begin(), words_.begin() + static_cast<std::ptrdiff_t>(first_));
        base_ += first_;
        first_ = 0;
      }
      words_.resize(word - base_ + 1, 0);
    }
    return word - base_;
  }

  std::vector<std::uint64_t> words_;
  std::uint64_t base_ = 0;  ///< Which word the first one is.
  std::size_t first_ = 0;   ///< The first that is not zero, while the set is not empty.
  std::size_t size_ = 0;
};

}  // namespace temper::orchestrator
