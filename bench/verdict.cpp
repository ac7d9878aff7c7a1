#include "bench/verdict.h"

#include <algorithm>
#include <map>

#include "base/format.h"
#include "base/table.h"

namespace cria::claims {
namespace {

using Kind = BenchRow::Kind;

FinalRace final_race_of(const Claim& claim) {
  return claim.against == Against::rival ? FinalRace::rival : FinalRace::ceiling;
}

std::string key_of(const Claim& claim) {
  std::string key = claim.problem + " " + name_of(claim.dtype);
  if (final_race_of(claim) == FinalRace::rival) key += " against rivals";
  for (const auto& [name, value] : claim.sizes) key += fmt::format(" {}={}", name, value);
  return key;
}

BenchResult measure_problem(const Claim& claim, const JudgeOptions& options) {
  const ProblemSpec& spec = find_problem(claim.problem);
  const ProblemRequest request{
      .device = options.device, .dtype = claim.dtype, .sizes = claim.sizes};
  BenchOptions how{.config = "all"};
  how.measure.budget_s = options.seconds;
  how.final_race = final_race_of(claim);
  how.measure.stop = options.stop;
  if (claim.ceiling)
    how.ceiling = claim.ceiling(options.device, make_problem(spec, request)->cost().bytes());
  return cria::bench(spec, request, how);
}

Verdict judge_one(const Claim& claim, const BenchResult& measured) {
  Verdict verdict{.claim = claim, .measured = measured};
  const BenchRow* ours = measured.best(Kind::kernel, claim.variant);
  if (!ours) {
    verdict.config = "no right result";
    return verdict;
  }
  verdict.config = ours->config;
  verdict.rate = ours->rate;
  switch (claim.against) {
    case Against::ceiling:
      verdict.against = measured.rows.back().name;
      verdict.ratio = ours->final_of_ceiling;
      verdict.met = verdict.ratio.median >= claim.target;
      break;
    case Against::rival:
      if (const BenchRow* rival = measured.best(Kind::rival)) {
        verdict.against = rival->name.substr(0, rival->name.find(':'));
        verdict.ratio = measured.final_over_rival;
        verdict.met = verdict.ratio.median >= claim.target;
      }
      break;
    case Against::variant:
      if (const BenchRow* other = measured.best(Kind::kernel, claim.other)) {
        verdict.against = claim.other;
        verdict.ratio = speed_ratio(ours->final_timing, other->final_timing);
        verdict.met = verdict.ratio.median <= claim.target;
      }
      break;
  }
  return verdict;
}

std::string show_sizes(const Claim& claim) {
  std::string out;
  for (const Parameter& p : find_problem(claim.problem).parameters)
    if (const auto size = claim.sizes.find(p.name); size != claim.sizes.end())
      out += fmt::format("{}{}={}", out.empty() ? "" : " ", p.name, size->second);
  return out;
}

}  // namespace

std::vector<Verdict> judge(const std::vector<Claim>& claims, const JudgeOptions& options) {
  std::map<std::string, BenchResult> measured;
  std::vector<Verdict> verdicts;
  for (const Claim& claim : claims) {
    try {
      auto found = measured.find(key_of(claim));
      if (found == measured.end())
        found = measured.emplace(key_of(claim), measure_problem(claim, options)).first;
      verdicts.push_back(judge_one(claim, found->second));
    } catch (const Interrupted&) {
      throw;
    } catch (const Error& error) {  // the other claims can still be measured
      verdicts.push_back({.claim = claim, .config = error.what()});
    }
  }
  return verdicts;
}

std::string sum_up(const std::vector<Verdict>& verdicts) {
  const auto count = [&](auto of) { return std::count_if(verdicts.begin(), verdicts.end(), of); };
  const auto met = count([](const Verdict& v) { return v.met; });
  const auto unknown = count([](const Verdict& v) { return !v.judged(); });
  const auto wrong = count([](const Verdict& v) { return !v.measured.all_right(); });
  std::string out = fmt::format("{} of {} claims met", met, verdicts.size());
  if (unknown > 0) out += fmt::format(", {} not measured", unknown);
  if (wrong > 0) out += fmt::format(", wrong results in {}", wrong);
  return out;
}

bool all_good(const std::vector<Verdict>& verdicts) {
  return std::all_of(verdicts.begin(), verdicts.end(), [](const Verdict& v) { return v.good(); });
}

std::string to_table(const std::vector<Verdict>& verdicts) {
  using enum Table::Align;
  Table table({{"claim", left},
               {"dtype", left},
               {"sizes", left},
               {"config", left},
               {"rate"},
               {"", left},
               {"against", left},
               {"ratio"},
               {"p10-p90"},
               {"target"},
               {"met", left}});
  for (const Verdict& v : verdicts) {
    const bool at_most = v.claim.against == Against::variant;
    table.add_row({v.claim.what, name_of(v.claim.dtype), show_sizes(v.claim), v.config,
                   fmt::format("{:.4g}", v.rate), v.measured.unit, v.against,
                   fmt::format("{:.3f}", v.ratio.median),
                   fmt::format("{:.3f}-{:.3f}", v.ratio.p10, v.ratio.p90),
                   fmt::format("{} {:.2f}", at_most ? "<=" : ">=", v.claim.target),
                   v.good() ? "yes"
                   : v.met  ? "WRONG"
                            : "NO"});
  }
  return table.to_string();
}

Json to_json(const std::vector<Verdict>& verdicts) {
  Json json = Json::array();
  for (const Verdict& v : verdicts)
    json.push_back(
        {{"claim", v.claim.what},
         {"config", v.config},
         {"against", v.against},
         {"ratio", {{"median", v.ratio.median}, {"p10", v.ratio.p10}, {"p90", v.ratio.p90}}},
         {"target", v.claim.target},
         {"met", v.met},
         {"right", v.measured.all_right()},
         {"measured", cria::to_json(v.measured)}});
  return json;
}

}  // namespace cria::claims
