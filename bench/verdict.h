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
};

struct JudgeOptions {
  Device device;
  double seconds = 1;  // to spend on one problem
  const std::atomic<bool>* stop = nullptr;
};

// Measures every problem that the claims are about once, and judges them.
std::vector<Verdict> judge(const std::vector<Claim>& claims, const JudgeOptions& options);

std::string to_table(const std::vector<Verdict>& verdicts);
Json to_json(const std::vector<Verdict>& verdicts);

}  // namespace cria::claims
