#!/usr/bin/env python3
"""cria and transformers read each other's checkpoints and compute the same logits; and transformers agrees with the
goldens of tests/plans.

usage: interop.py PATH_TO_CRIA [WORD]      only the cases whose name contains WORD
Exit status: 0 all pass, 1 some fail, 2 they could not be run.
"""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
try:
    import tokenizers
    import torch
    from safetensors import safe_open
    from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
except ImportError as missing:
    print(f"The interop test needs torch, transformers, tokenizers and safetensors ({missing}): "
          "use 'make interop-test', which installs them.", file=sys.stderr)
    sys.exit(2)

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOLERANCE = 1e-4
TEXT = "Shall I compare thee to a summer's day? Thou art more lovely and more temperate. Ünïcödé 漢字 🦙\n" * 40


class Failure(Exception):
    """What went wrong, in a sentence."""


def run(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        words = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise Failure(f"`{' '.join(map(str, command))}` exited with {done.returncode}: {words[-1] if words else ''}")


def cria_logits(cria, model, tokens, folder):
    file = folder / "logits.json"
    file.unlink(missing_ok=True)
    run([cria, "logits", "--model", model, "--tokens", ",".join(map(str, tokens)), "--json", file])
    answer = json.loads(file.read_text())
    if answer["tokens"] != tokens:
        raise Failure(f"cria computed the logits of the tokens {answer['tokens']} instead of {tokens}")
    return torch.tensor(answer["logits"], dtype=torch.float64)


def transformers_logits(model, tokens):
    with torch.no_grad():
        return model.double()(torch.tensor([tokens])).logits[0]


def compare(what, got, want, tolerance=TOLERANCE):
    """A sentence with the largest difference; a Failure when it is too large or not a number."""
    if got.shape != want.shape:
        raise Failure(f"{what} has shape {list(got.shape)} instead of {list(want.shape)}")
    difference = (got.double() - want.double()).abs().max().item()
    if not difference <= tolerance:
        raise Failure(f"{what} differs by {difference:.1e}, more than {tolerance:.0e}")
    return f"{what} equal to {difference:.1e}, largest {want.abs().max().item():.1f}"


def compare_logits(cria, model, folder, count):
    """Of a checkpoint, by both programs, for `count` random tokens."""
    loaded, notes = AutoModelForCausalLM.from_pretrained(model, output_loading_info=True)
    for problem in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        if notes[problem]:
            raise Failure(f"transformers reports {problem.replace('_', ' ')}: {sorted(map(str, notes[problem]))}")
    tokens = random.Random(count).choices(range(loaded.config.vocab_size), k=count)
    return compare("logits", cria_logits(cria, model, tokens, folder), transformers_logits(loaded, tokens))


def write_tokenizer(folder):
    tokenizer = tokenizers.ByteLevelBPETokenizer()
    tokenizer.train_from_iterator([TEXT], vocab_size=300, show_progress=False)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer._tokenizer).save_pretrained(folder)


def write_model(folder, dtype="float32", shard=None, classic=False, **sizes):
    """A random LLaMA as transformers saves it, its weights large enough that every one matters."""
    torch.manual_seed(0)
    sizes = {"vocab_size": 320, "hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
             "num_key_value_heads": 2, "intermediate_size": 88, "max_position_embeddings": 256} | sizes
    model = LlamaForCausalLM(LlamaConfig(initializer_range=0.15, **sizes))
    for name, weight in model.named_parameters():
        if weight.ndim == 1:
            torch.nn.init.uniform_(weight, 0.7, 1.3)
    model.to(getattr(torch, dtype)).save_pretrained(folder, **({"max_shard_size": shard} if shard else {}))
    if shard and not (folder / "model.safetensors.index.json").exists():
        raise Failure(f"transformers did not shard at {shard}; give a smaller size")
    if classic:
        write_classic_config(folder / "config.json")
    write_tokenizer(folder)


def write_classic_config(path):
    """rope_theta and rope_scaling apart, and torch_dtype, as transformers 4 and the published Llamas have them."""
    config = json.loads(path.read_text())
    if rope := config.pop("rope_parameters", None):
        config["rope_theta"] = rope.pop("rope_theta")
        config["rope_scaling"] = rope if rope["rope_type"] != "default" else None
    if "dtype" in config:
        config["torch_dtype"] = config.pop("dtype")
    path.write_text(json.dumps(config, indent=2))


LLAMA3 = {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}
WRITTEN = {  # what transformers writes and cria reads: name: (arguments of write_model, tokens)
    "fp32 untied": (dict(), 24),
    "fp32 tied": (dict(tie_word_embeddings=True), 24),
    "bf16 untied": (dict(dtype="bfloat16"), 24),
    "bf16 tied sharded": (dict(dtype="bfloat16", tie_word_embeddings=True, shard="40KB"), 24),
    "fp32 sharded": (dict(shard="60KB"), 24),
    "multi-head, odd sizes": (dict(hidden_size=30, num_attention_heads=3, num_key_value_heads=3, intermediate_size=41,
                                   vocab_size=301), 17),
    "heads wider than the model": (dict(head_dim=32, num_key_value_heads=1), 24),
    "llama3 rope": (dict(rope_parameters=LLAMA3, tie_word_embeddings=True), 150),
    "llama3 rope, classic config": (dict(rope_parameters=LLAMA3, classic=True), 150),
    "other eps and theta, classic config": (dict(rms_norm_eps=1e-2, classic=True, rope_parameters={
        "rope_type": "default", "rope_theta": 500.0}), 60),
    "one token": (dict(), 1),
}


def written_case(cria, folder, arguments, count):
    model = folder / "model"
    write_model(model, **arguments)
    return compare_logits(cria, model, folder, count)


def trained_case(cria, folder):
    data, out = folder / "data.txt", folder / "run"
    data.write_text(TEXT)
    run([cria, "train", "--config", "debug", "--steps", "2", "--out", out, "--device", "cpu", "--data", data])
    return compare_logits(cria, out / "latest", folder, 24)


def llama_config(hidden_size, **sizes):
    """LlamaConfig of any width: transformers 5 checks for a multiple of the heads, also where their width is given,
    but runs others all the same."""
    config = LlamaConfig(hidden_size=sizes["num_attention_heads"] * sizes["head_dim"], **sizes)
    config.hidden_size = hidden_size
    return config


def golden_case(file):
    """transformers' logits, loss and gradients from a golden's weights; it rounds RoPE to fp32 on the way."""
    golden = safe_open(file, "pt")
    names = json.loads(golden.metadata()["parameters"])
    model = LlamaForCausalLM(llama_config(**json.loads(golden.metadata()["config"]))).double()
    parameters = dict(model.named_parameters())
    if sorted(parameters) != sorted(names):
        raise Failure(f"transformers has other parameters: {sorted(set(parameters) ^ set(names))}")
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(golden.get_tensor(f"weights.{name}"))
    logits = model(golden.get_tensor("tokens").long()).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), golden.get_tensor("targets").long().flatten())
    loss.backward()
    sentence = compare("logits", logits.detach(), golden.get_tensor("logits"))
    compare("loss", loss.detach(), golden.get_tensor("losses")[0], 1e-5)
    for name, parameter in parameters.items():
        compare(f"the gradient of {name}", parameter.grad, golden.get_tensor(f"grads.{name}"), 1e-5)
    return f"{sentence}, and {len(names)} gradients"


def main():
    if len(sys.argv) not in (2, 3) or not os.access(sys.argv[1], os.X_OK):
        print(__doc__, file=sys.stderr)
        return 2
    cria, word = pathlib.Path(sys.argv[1]).resolve(), (sys.argv[2:] or [""])[0]
    cases = {f"golden {file.stem}": lambda folder, file=file: golden_case(file)
             for file in sorted((ROOT / "tests/plans/goldens").glob("*.safetensors"))}
    cases |= {f"transformers to cria: {name}": lambda folder, how=how: written_case(cria, folder, *how)
              for name, how in WRITTEN.items()}
    cases["cria to transformers: debug, two steps"] = lambda folder: trained_case(cria, folder)
    cases = {name: case for name, case in cases.items() if word in name}
    if not cases:
        print(f"no case has '{word}' in its name", file=sys.stderr)
        return 2
    failed = 0
    for name, case in cases.items():
        with tempfile.TemporaryDirectory() as folder:
            try:
                print(f"PASS  {name}: {case(pathlib.Path(folder))}", flush=True)
            except Exception as error:  # a library's exception fails its case, not the run
                failed += 1
                reason = error if isinstance(error, Failure) else f"{type(error).__name__}: {error}"
                print(f"FAIL  {name}: {reason}", flush=True)
    print(f"{len(cases) - failed} of {len(cases)} interop cases pass")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
