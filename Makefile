# The front door. `make run` and `make test` set up a fresh Debian or Ubuntu machine by themselves.
SHELL := /bin/bash
.DEFAULT_GOAL := help
JOBS ?= $(shell nproc)
export PATH := $(if $(CUDA_HOME),$(CUDA_HOME)/bin:)$(PATH):/usr/local/cuda/bin

# What is here: a GPU and nvcc give the CUDA build for that very GPU, anything else the CPU build.
# NOTE: make before 4.4 does not pass an exported PATH on to $(shell).
GPU_CC := $(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | sed -n '1s/[^0-9]//gp')
GPU_ARCH := $(patsubst 90-real,90a-real,$(GPU_CC:%=%-real))
NVCC := $(shell PATH="$(PATH)" command -v nvcc)
NVCC_VERSION := $(if $(NVCC),$(shell PATH="$(PATH)" nvcc --version | sed -n 's/.*release \([0-9.]*\).*/\1/p'))
LEAST_CUDA := $(shell sed -n 's/^set(CRIA_LEAST_CUDA \(.*\))/\1/p' cmake/cuda.cmake)
NVCC_FITS := $(if $(NVCC_VERSION),$(shell printf '%s\n' $(LEAST_CUDA) $(NVCC_VERSION) | sort -VC && echo yes))
GPU_FITS := $(shell test "$(GPU_CC)" -ge 80 2>/dev/null && echo yes)
PRESET ?= $(if $(and $(GPU_FITS),$(NVCC_FITS)),gpu,cpu)

# Without this check, what an old CMake says of presets does not tell what to do.
LEAST_CMAKE := $(shell sed -n 's/^cmake_minimum_required(VERSION \(.*\))/\1/p' CMakeLists.txt)
check_cmake = version=$$(cmake --version | sed -n '1s/[^0-9]*//p'); \
  printf '%s\n' $(LEAST_CMAKE) "$$version" | sort -VC || { \
  echo "cmake $$version is too old, and cria needs $(LEAST_CMAKE) or newer: get it from cmake.org or with 'pip install cmake'." >&2; exit 2; }

# While Ninja builds: the slowest files are compiled first, so the count begins slowly.
export NINJA_STATUS := [%f/%t, slowest files first] 

# The preset `gpu` is the preset `cuda` narrowed to the GPU in this machine, in its own folder.
# `make bundle ARCH=90a-real` makes one for that architecture alone, in a folder of its own.
ARCH ?=
BUNDLE := build/bundle$(addprefix -,$(subst ;,+,$(ARCH)))
CONFIGURE_bundle = --preset bundle -B $(BUNDLE) $(if $(ARCH),-DCMAKE_CUDA_ARCHITECTURES="$(ARCH)")
CONFIGURE_gpu = --preset cuda -B build/gpu -DCMAKE_CUDA_ARCHITECTURES="$(GPU_ARCH)"
configure = $(check_cmake); cmake $(or $(CONFIGURE_$(1)),--preset $(1)) -Wno-dev >/dev/null
BUILD := build/$(PRESET)

# GPU tests have "cuda" or "Gpu" in their names; compute-sanitizer slows kernels a hundredfold, so those that
# call themselves large, and kernel tests that are not small, are left out. Some tests make calls that must fail,
# and cria reports all others: memcheck is for what kernels do.
SANITIZE_FILTER ?= *GpuSmall*:*cuda*:*Cuda*:-*large*:*Large*
ARGS ?=

# Most tests keep one core busy, so they run in two processes; on a GPU, and when ARGS picks some, in one.
TEST_PROCESSES ?= $(if $(filter gpu,$(PRESET))$(ARGS),1,2)
run_tests = tests/run $(TEST_PROCESSES) $(1)/cria_tests

# cria installed and a program built against it; left out when ARGS picks some tests.
install_test = $(if $(ARGS),,ctest --test-dir $(1) -L install --output-on-failure)

.PHONY: help deps build build-cuda bundle run test asan fuzz interop-test bench-sizes gpu-check gpu-build gpu-test \
        bench-parts gpu-bench gpu-sanitize gpu-trace-check format clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

deps:
	@tools/install-deps

build: deps  ## Build everything for this machine (with CUDA when it has a GPU and nvcc)
	@$(call configure,$(PRESET)) -DCRIA_KERNELS=all
	@cmake --build $(BUILD) -j $(JOBS)

build-cuda: deps  ## Compile everything for all GPUs; needs nvcc, no GPU
	@$(call configure,cuda)
	@cmake --build build/cuda -j $(JOBS)

bundle: deps  ## Everything in one file for machines with a GPU and no compiler; needs nvcc, no GPU
	@$(call configure,bundle)
	@cmake --build $(BUNDLE) -j $(JOBS) --target cria_cli cria_tests cria_bench
	@tools/bundle $(BUNDLE)

# A folder that holds all kernels keeps them.
TOUR_KERNELS = $(if $(wildcard $(BUILD)/CMakeCache.txt),,-DCRIA_KERNELS=tour)
run: deps  ## Build what a short tour needs, and take it
	@$(call configure,$(PRESET)) $(TOUR_KERNELS)
	@cmake --build $(BUILD) -j $(JOBS) --target cria_cli
	@tools/tour $(BUILD)/cria

test: build  ## Build and run all tests; tests that need an absent GPU are skipped and counted
	@$(call install_test,$(BUILD))
	@$(call run_tests,$(BUILD)) $(ARGS)

# Instrumented kernels are slow to build: one memory type stands for all, and what needs the others is left to
# `make test`. So is what measures resident memory: the sanitizer keeps what was freed, and gives it back at any time.
ASAN_FILTER ?= -*bf16*:*_f16*:Inspect.*:*EachPlansPeakIsItsOwn*:*MemoryUse*
asan: deps  ## Build and run the tests under address and undefined-behaviour sanitizers
	@$(call configure,asan)
	@cmake --build build/asan -j $(JOBS) --target cria_tests
	@ASAN_OPTIONS=allocator_may_return_null=1 $(call run_tests,build/asan) --gtest_filter='$(ASAN_FILTER)' $(ARGS)

FUZZ_SECONDS ?= 60
fuzz: deps  ## Feed damaged model files to everything that reads them, under the sanitizers
	@$(call configure,asan)
	@cmake --build build/asan -j $(JOBS) --target cria_fuzz
	@build/asan/cria_fuzz $(FUZZ_SECONDS) $(ARGS)

interop-test: build  ## Exchange checkpoints with transformers both ways (needs Python; pip gets what is missing)
	@tests/interop/run $(BUILD)/cria $(ARGS)

bench-sizes: build  ## Time the plans at sizes drawn at random, on the GPU or else the CPU: ARGS="--count 4"
	@bench/sizes $(BUILD)/cria $(ARGS)

# The GPU targets install nothing: a GPU machine is taken as it is.
gpu-check:
	@test -n "$(GPU_CC)" || { echo "No NVIDIA GPU was found (nvidia-smi shows none): run this on a GPU machine, or 'make test' here." >&2; exit 2; }
	@test -n "$(GPU_FITS)" || { echo "This GPU's compute capability is below 8.0, which cria's kernels need: run this on a newer one, or 'make test' here." >&2; exit 2; }
	@test -n "$(NVCC)" || { echo "nvcc was not found: install the CUDA toolkit or put its bin folder on PATH." >&2; exit 2; }
	@test -n "$(NVCC_FITS)" || { echo "$(NVCC) is of CUDA $(NVCC_VERSION), and cria needs $(LEAST_CUDA) or newer: install it and set CUDA_HOME to its folder." >&2; exit 2; }

gpu-build: gpu-check
	@$(call configure,gpu)
	@cmake --build build/gpu -j $(JOBS)

gpu-test: gpu-build  ## On a GPU machine: build for its GPU and run all tests
	@$(call install_test,build/gpu)
	@tests/run 1 build/gpu/cria_tests $(ARGS)

bench-parts:  # a name that is none is refused before building
	@ONLY="$(ONLY)" bench/gpu --list >/dev/null

gpu-bench: bench-parts gpu-build  ## On a GPU machine: measure every claim in bench/, or some: ONLY="train gemm"
	@ONLY="$(ONLY)" bench/gpu build/gpu/cria $(ARGS)

gpu-sanitize: gpu-build  ## On a GPU machine: the smaller GPU tests under compute-sanitizer
	@build/gpu/cria_tests --gtest_list_tests --gtest_filter='$(SANITIZE_FILTER)' | grep -q '^ ' || { echo "No test matches SANITIZE_FILTER=$(SANITIZE_FILTER)" >&2; exit 2; }
	@for tool in "memcheck --report-api-errors no" racecheck; do \
	  echo "compute-sanitizer --tool $$tool"; \
	  compute-sanitizer --tool $$tool --error-exitcode 1 build/gpu/cria_tests --gtest_brief=1 --gtest_filter='$(SANITIZE_FILTER)' || exit 1; \
	done

gpu-trace-check: gpu-build  ## On a GPU machine: the tracer's counts against the hardware's
	@bench/trace-check build/gpu/cria $(ARGS)

format:  ## Format all C++ and CUDA sources
	@git ls-files '*.h' '*.cpp' '*.cu' | xargs -r clang-format -i

clean:  ## Remove everything built
	rm -rf build
