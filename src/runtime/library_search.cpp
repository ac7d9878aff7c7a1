#include "runtime/library_search.h"

#include <algorithm>

namespace cria {
namespace {

namespace fs = std::filesystem;

using Paths = std::vector<fs::path>;

// A list as in PATH.
Paths split(const char* list) {
  Paths paths;
  for (std::string rest = list ? list : ""; !rest.empty();) {
    const size_t end = std::min(rest.find(':'), rest.size());
    if (end > 0) paths.push_back(rest.substr(0, end));
    rest.erase(0, end + 1);
  }
  return paths;
}

// The folders that Pythons are installed under, best guess first: the one of an environment that is active, the one
// that `python3` starts, and what `pip install --user` fills. No Python is run: that takes longer than all else here.
Paths python_prefixes(const LibrarySearch& search) {
  Paths prefixes;
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const char* prefix = search.variable(name)) prefixes.push_back(prefix);
  std::error_code ignored;
  for (const fs::path& folder : split(search.variable("PATH"))) {
    const fs::path python = folder / "python3";
    if (!fs::exists(python, ignored)) continue;
    prefixes.push_back(folder.parent_path());
    prefixes.push_back(fs::canonical(python, ignored).parent_path().parent_path());
    break;
  }
  if (const char* base = search.variable("PYTHONUSERBASE"))
    prefixes.push_back(base);
  else if (const char* home = search.variable("HOME"))
    prefixes.push_back(fs::path(home) / ".local");
  return prefixes;
}

// The folders that hold Python's packages.
Paths package_folders(const LibrarySearch& search) {
  Paths folders = split(search.variable("PYTHONPATH"));
  std::error_code ignored;
  for (const fs::path& prefix : python_prefixes(search)) {
    for (const char* lib : {"lib", "lib64", "local/lib"}) {
      Paths versions;
      for (const auto& entry : fs::directory_iterator(prefix / lib, ignored))
        if (entry.path().filename().string().starts_with("python3")) versions.push_back(entry);
      std::sort(versions.rbegin(), versions.rend());
      for (const fs::path& version : versions)
        for (const char* packages : {"site-packages", "dist-packages"})
          folders.push_back(version / packages);
    }
  }
  return folders;
}

}  // namespace

std::vector<std::string> library_candidates(const LibrarySearch& search) {
  std::vector<std::string> found;
  const auto look_in = [&](const fs::path& folder) {
    std::error_code ignored;
    const std::string file = (folder / search.file).string();
    if (fs::is_regular_file(file, ignored) &&
        std::find(found.begin(), found.end(), file) == found.end())
      found.push_back(file);
  };
  look_in(search.beside);
  look_in(search.beside / "lib");
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* home = search.variable(name);
    if (!home || !*home) continue;
    for (const char* lib : {"lib64", "lib", "targets/x86_64-linux/lib"})
      look_in(fs::path(home) / lib);
  }
  found.push_back(search.file);
  if (!search.toolkit.empty()) look_in(search.toolkit);
  look_in("/usr/local/cuda/lib64");
  for (const fs::path& packages : package_folders(search)) {
    look_in(packages / "nvidia" / ("cu" + std::to_string(search.major)) / "lib");
    look_in(packages / "nvidia" / search.wheel / "lib");
  }
  return found;
}

}  // namespace cria
