// What came of measuring a claim.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "base/json.h"
#include "bench/claim.h"

namespace cria::claims {

struct Verdict {
  Claim claim;
  BenchResult measured = {};
  std::string config = {};   // the fastest one, which was judged; or why there is none
  std::string against = {};  // what it was compared with
  double rate = 0;
  Ratio ratio = {};  // of the final race
  bool met = false;
  bool judged() const { return ratio.median > 0; }
  // Whether nothing is to be complained of: a wrong result counts even if it did not win.
  bool good() const { return met && measured.all_right(); }
};

struct JudgeOptions {
  Device device;
  double seconds = 1;  // to spend on one problem
  const std::atomic<bool>* stop = nullptr;
};

// Measures every problem that the claims are about once, and judges them.
std::vector<Verdict> judge(const std::vector<Claim>& claims, const JudgeOptions& options);

// "6 of 8 claims met, 1 not measured, wrong results in 1".
std::string sum_up(const std::vector<Verdict>& verdicts);
bool all_good(const std::vector<Verdict>& verdicts);

std::string to_table(const std::vector<Verdict>& verdicts);
Json to_json(const std::vector<Verdict>& verdicts);

}  // namespace cria::claims
