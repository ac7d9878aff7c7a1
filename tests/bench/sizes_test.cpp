// bench/sizes: what it draws, and how it judges, with a program in place of cria that gives figures set here.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/format.h"
#include "base/json.h"
#include "support/command.h"
#include "support/files.h"
#include "support/places.h"

namespace cria::test {
namespace {

namespace fs = std::filesystem;

// The step of each turn of baseline, fused, flash, and flash on the rounded model.
using Turns = std::vector<std::vector<double>>;

class BenchSizes : public testing::Test {
 protected:
  void SetUp() override {
    if (!run_command("python3 --version").ok) GTEST_SKIP() << "there is no python3";
  }
  // `compare` gives these figures, each call the next; the last ones again and again.
  void cria_measures(const std::string& device, const std::vector<Turns>& runs) const {
    write("devices", "[" +
                         Json({{"device", device},
                               {"device_name", "a machine"},
                               {"device_memory_bytes", int64_t{140} << 30},
                               {"commit", "0"},
                               {"driver", 0},
                               {"runtime", 0},
                               {"library", "none"},
                               {"unix_time", 0}})
                             .dump() +
                         "]");
    for (size_t i = 0; i < runs.size(); ++i) write(fmt::format("run{}", i), figures(runs[i]));
    write("count", "0");
    const std::string here = quoted(folder_.path().string());
    script("for last; do :; done\ncd " + here +
           "\necho \"$@\" >> calls\n[ $1 = devices ] && exec cp devices \"$last\"\n"
           "n=$(cat count); echo $((n + 1)) > count\n[ -f run$n ] || n=" +
           std::to_string(runs.size() - 1) + "\ncp run$n \"$last\"");
  }
  void script(const std::string& text) const {
    write("cria", "#!/bin/sh\n" + text + "\n");
    fs::permissions(folder_ / "cria", fs::perms::owner_all);
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
  static std::string figures(const Turns& turns) {
    Json json = {{"in_turn", true}, {"plans", Json::array()}};
    const char* names[] = {"baseline", "fused", "flash", "flash rounded"};
    for (size_t i = 0; i < turns.size(); ++i)
      json["plans"].push_back({{"plan", names[i]},
                               {"turns_ms", turns[i]},
                               {"kernels",
                                {{{"kernel", "gate_up"},
                                  {"config", fmt::format("tile_of_{}", names[i])},
                                  {"us", 12},
                                  {"launches", 3}}}}});
    return json.dump();
  }
  // What was printed, its exit status in the last line.
  std::string run(const std::string& options) const {
    return run_command("{ " + quoted(in_repository("bench/sizes").string()) + " " +
                       quoted((folder_ / "cria").string()) + " " + options +
                       "; echo status $?; } 2>&1")
        .output;
  }
  static void expect_says(const std::string& output, std::initializer_list<std::string> parts) {
    for (const std::string& part : parts)
      EXPECT_NE(output.find(part), std::string::npos) << "no \"" << part << "\" in: " << output;
  }

  TemporaryFolder folder_;
  static constexpr const char* kOwn = "--count 0 --also 65,2,4,2,34,99,1001,3,17 ";
};

const Turns kGood = {{4, 4, 4}, {3, 3, 3}, {2, 2, 2}, {2, 2, 2}};

// The sizes of --list, nine numbers each; on a GPU they are listed in tf32, too.
std::vector<std::vector<int>> sizes_of(const std::string& list) {
  std::vector<std::vector<int>> out;
  std::istringstream lines(list);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string number, type, word;
    if (!(words >> number >> type) || (type != "bf16" && type != "f32")) continue;
    out.emplace_back();
    while (words >> word)
      if (word != "on" && word != "x") out.back().push_back(std::stoi(word));
  }
  return out;
}

TEST_F(BenchSizes, DrawsWhatTheSeedSaysWithinWhatPlansTake) {
  for (const std::string device : {"cpu", "cuda:0"}) {
    cria_measures(device, {kGood});
    const std::string list = run("--list --count 60");
    EXPECT_EQ(run("--list --count 60"), list);
    EXPECT_NE(run("--list --count 60 --seed 2"), list);
    const auto sizes = sizes_of(list), fewer = sizes_of(run("--list --count 7"));
    ASSERT_EQ(sizes.size(), 60u) << list;
    ASSERT_EQ(fewer.size(), 7u);
    const bool cuda = device != "cpu";
    int odd = 0, whole = 0;
    std::set<int> groups;
    for (const auto& s : sizes) {
      ASSERT_EQ(s.size(), 9u) << list;
      const int dim = s[0], heads = s[2], kv = s[3], width = s[4], vocab = s[6];
      EXPECT_TRUE(dim >= 64 && dim <= (cuda ? 4096 : 512)) << dim;
      EXPECT_TRUE(width >= 32 && width <= 256 && width % 2 == 0) << width;
      EXPECT_EQ(heads % kv, 0);
      groups.insert(heads / kv);
      EXPECT_LE(vocab, cuda ? 130'000 : 4096);
      EXPECT_LE(int64_t{s[7]} * s[8], cuda ? 16384 : 1024);
      (dim % 8 == 0 ? whole : odd) += 1;
    }
    EXPECT_GT(odd, 10);
    EXPECT_GT(whole, 10);
    EXPECT_GT(groups.size(), 3u);
    EXPECT_LE(*groups.rbegin(), 8);
  }
}

TEST_F(BenchSizes, WhenEveryClaimIsMetTheStatusIs0) {
  cria_measures("cuda:0", {kGood});
  const std::string output = run("--count 3");
  expect_says(
      output,
      {"3 sizes on cuda:0", "fused at most 1.02 of baseline beyond the spread: 6 of 6",
       "flash at most 1.07 of its rounded neighbour: 6 of 6", "6 of 6 measured in", "status 0"});
  expect_says(read_text(folder_ / "calls"), {"compare --device cuda:0 --dtype bf16 --dim",
                                             "compare --device cuda:0 --dtype tf32"});
}

TEST_F(BenchSizes, AMissIsMeasuredAgainNamedAndExplained) {
  cria_measures("cpu", {{{4, 4, 4}, {3, 3, 3}, {5, 5, 5}, {2, 2, 2}}});
  const std::string json = (folder_ / "out.json").string();
  const std::string output = run(kOwn + ("--json " + quoted(json)));
  expect_says(output,
              {"flash at most 1.10 of baseline: 0 of 1; MISSED by 1 f32 (1.250)",
               "flash at most 1.07 of its rounded neighbour: 0 of 1; MISSED by 1 f32 (2.500)",
               "once more", "1 f32, 65, 2, 4 on 2 x 34, 99, 1001, 3 x 17: flash at most 1.10",
               "gate_up", "tile_of_flash rounded", "status 1"});
  const Json row = read_json(json)["sizes"].at(0);
  EXPECT_EQ(row["runs"].size(), 2u);
  EXPECT_EQ(row["ratios"].at(0)["median"], 1.25);
  EXPECT_EQ(row["ratios"].at(0)["missed"], true);
}

TEST_F(BenchSizes, AMissThatDoesNotComeBackIsNone) {
  cria_measures("cpu", {{{4, 4, 4}, {3, 3, 3}, {5, 4, 5}, {5, 4, 5}},
                        {{4, 4, 4, 4}, {3, 3, 3, 3}, {4, 4, 4, 4}, {4, 4, 4, 4}}});
  expect_says(run(kOwn), {"once more", "1.10 of baseline: 1 of 1", "status 0"});
}

TEST_F(BenchSizes, BetweenPlansOnAGpuTheSpreadCounts) {
  cria_measures("cuda:0",
                {{{2, 2, 2, 2}, {2, 2.1, 2.1, 2}, {2.2, 2.2, 2.2, 2.2}, {2.2, 2.2, 2.2, 2.2}}});
  expect_says(run(kOwn), {"fused at most 1.02 of baseline beyond the spread: 2 of 2",
                          "flash at most 1.02 of fused beyond the spread: 0 of 2; MISSED by 1 bf16",
                          "status 1"});
}

TEST_F(BenchSizes, ASizeOfWholeVectorsIsItsOwnNeighbour) {
  cria_measures("cpu", {{{4}, {3}, {2}}});
  const std::string output = run("--count 0 --also 64,2,4,2,32,96,1000,3,17");
  expect_says(output, {"itself", "neighbour: 0 of 0", "status 0"});
  EXPECT_EQ(read_text(folder_ / "calls").find("--rounded"), std::string::npos);
}

TEST_F(BenchSizes, WhatCannotBeMeasuredIsNotMet) {
  cria_measures("cpu", {kGood});
  expect_says(run("--count 2 --minutes 0"),
              {"NOT measured, for want of time: the last 2", "status 1"});
  const std::string there = quoted((folder_ / "devices").string());
  script("for last; do :; done\n[ $1 = devices ] && exec cp " + there +
         " \"$last\"\necho 'cria: heads too wide' >&2; exit 1");
  expect_says(run("--count 2"), {"FAILED: cria: heads too wide", "FAILED: 1 f32 (", "status 1"});
  expect_says(run("--count 2 --also 1,2,3"), {"'1,2,3' is not DIM,LAYERS,HEADS,KV", "status 2"});
}

TEST_F(BenchSizes, AnInterruptShowsWhatWasMeasured) {
  cria_measures("cpu", {kGood});
  const std::string json = (folder_ / "out.json").string();
  std::string text = read_text(folder_ / "cria");
  text += "if [ $n = 1 ]; then kill -INT $PPID; exec sleep 20; fi\n";
  write("cria", text);
  write("run1", figures(kGood));
  const std::string output = run("--count 5 --json " + quoted(json));
  expect_says(output, {"flash at most 1.10 of baseline: 1 of 1", "1 of 5 measured in",
                       "interrupted", "status 130"});
  EXPECT_EQ(output.find("Traceback"), std::string::npos) << output;
  EXPECT_EQ(read_json(json)["sizes"].size(), 1u);
}

}  // namespace
}  // namespace cria::test
