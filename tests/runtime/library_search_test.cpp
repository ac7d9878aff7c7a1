#include "runtime/library_search.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "support/files.h"

namespace cria::test {
namespace {

namespace fs = std::filesystem;

// A machine in a folder, with the variables that point into it and nothing else.
class LibrarySearchTest : public testing::Test {
 protected:
  // Makes a file of the library's name there.
  std::string library_in(const std::string& folder) const {
    fs::create_directories(root_ / folder);
    const fs::path file = root_ / folder / "libwanted.so.13";
    std::ofstream(file) << "a library";
    return file.string();
  }
  void set(const std::string& name, const std::string& folder) {
    variables_[name] = (root_ / folder).string();
  }
  // What is tried of what this machine has; the real /usr/local/cuda may hold no such file.
  std::vector<std::string> candidates() const {
    return library_candidates({.file = "libwanted.so.13",
                               .wheel = "wanted",
                               .major = 13,
                               .beside = root_ / "program",
                               .toolkit = (root_ / "toolkit/lib64").string(),
                               .variable = [this](const char* name) {
                                 auto found = variables_.find(name);
                                 return found == variables_.end() ? nullptr : found->second.c_str();
                               }});
  }

  TemporaryFolder root_;
  std::map<std::string, std::string> variables_;
};

TEST_F(LibrarySearchTest, WhereThereIsNoneTheLoaderIsAskedAlone) {
  EXPECT_EQ(candidates(), std::vector<std::string>{"libwanted.so.13"});
}

TEST_F(LibrarySearchTest, BesideTheProgramThenCudaHomeThenTheLoaderThenTheToolkitOfTheBuild) {
  const std::string toolkit = library_in("toolkit/lib64"), home = library_in("cuda/lib64"),
                    path = library_in("other/targets/x86_64-linux/lib"),
                    lib = library_in("program/lib"), beside = library_in("program");
  set("CUDA_HOME", "cuda");
  set("CUDA_PATH", "other");
  EXPECT_EQ(candidates(),
            (std::vector<std::string>{beside, lib, home, path, "libwanted.so.13", toolkit}));
}

TEST_F(LibrarySearchTest, InTheWheelsOfThePythonOnPath) {
  fs::create_directories(root_ / "python/bin");
  std::ofstream(root_ / "python/bin/python3") << "python";
  const std::string of_12 = library_in("python/lib/python3.11/site-packages/nvidia/wanted/lib");
  variables_["PATH"] = "/nonexistent::" + (root_ / "python/bin").string();
  EXPECT_EQ(candidates(), (std::vector<std::string>{"libwanted.so.13", of_12}));
  const std::string of_13 = library_in("python/lib/python3.11/site-packages/nvidia/cu13/lib");
  EXPECT_EQ(candidates(), (std::vector<std::string>{"libwanted.so.13", of_13, of_12}));
}

// A virtual environment's python3 is a link, and may see the packages of the Python that it leads to.
TEST_F(LibrarySearchTest, InAVirtualEnvironmentAndInThePythonThatItIsOf) {
  fs::create_directories(root_ / "system/bin");
  fs::create_directories(root_ / "env/bin");
  std::ofstream(root_ / "system/bin/python3.12") << "python";
  fs::create_symlink(root_ / "system/bin/python3.12", root_ / "env/bin/python3");
  const std::string system =
                        library_in("system/local/lib/python3.12/dist-packages/nvidia/cu13/lib"),
                    env = library_in("env/lib/python3.12/site-packages/nvidia/cu13/lib");
  set("PATH", "env/bin");
  EXPECT_EQ(candidates(), (std::vector<std::string>{"libwanted.so.13", env, system}));
}

TEST_F(LibrarySearchTest, InTheUsersPackagesAndInPythonPath) {
  const std::string user = library_in("home/.local/lib/python3.9/site-packages/nvidia/cu13/lib"),
                    extra = library_in("extra/nvidia/cu13/lib");
  set("HOME", "home");
  set("PYTHONPATH", "extra");
  EXPECT_EQ(candidates(), (std::vector<std::string>{"libwanted.so.13", extra, user}));
}

}  // namespace
}  // namespace cria::test
