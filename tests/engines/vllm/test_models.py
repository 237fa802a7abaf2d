"""Small models generate in vLLM with Sluice and with vLLM's own backend for CPUs, and compute the same."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import models  # noqa: E402

# Of logits, whose largest differences are the spread. Both backends round each layer's attention, and so do all layers
# after it.
LAST_PLACE = {"bfloat16": 2.0 ** -8, "float16": 2.0 ** -11}
PLACES = 4
# Where the runs differ by a rounding, one may store a value of FP8 and the other the next one. Few do: a quarter of a step.
FP8_PLACES = {"fp8": 2.0 ** -5, "fp8_e5m2": 2.0 ** -4}


def generated(folder, own):
    """Results of all cases with vLLM's own backend or with Sluice."""
    file = folder / ("own.pt" if own else "sluice.pt")
    environment = {**os.environ, "VLLM_ENABLE_V1_MULTIPROCESSING": "0", **({"VLLM_PLUGINS": ""} if own else {})}
    backend = "own" if own else "sluice"
    subprocess.run([sys.executable, HERE / "generate.py", backend, folder, file, *models.CASES], check=True, env=environment)
    return torch.load(file, weights_only=False)


def allowed(case, spread):
    """The largest difference of logits that roundings explain."""
    place = LAST_PLACE[case.options.get("dtype", "bfloat16")]
    return spread * max(PLACES * place, FP8_PLACES.get(case.options.get("kv_cache_dtype"), 0.0))


class Models(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        path = pathlib.Path(folder.name)
        for name, case in models.CASES.items():
            models.save(case, path / name)
        cls.own, cls.sluice = (generated(path, own) for own in (True, False))

    def test_same_tokens(self):
        """Tokens are equal up to a step where the best two were as near as roundings; logits are near until there."""
        for name, case in models.CASES.items():
            for i, (own, got) in enumerate(zip(self.own[name], self.sluice[name], strict=True)):
                with self.subTest(name, result=i):
                    same = [a == b for a, b in zip(own.tokens, got.tokens, strict=True)]
                    count = same.index(False) + 1 if False in same else len(own.scores)
                    scores = own.scores[:count]
                    bound = allowed(case, (scores.max() - scores.min()).item())
                    error = (scores - got.scores[:count]).abs().max().item()
                    print(f"{name} {i}: {sum(same)} of {len(same)} equal, error {error:.4f} of {bound:.4f}")
                    self.assertLess(error, bound)
                    if False in same:
                        best, second = scores[-1].topk(2).values.tolist()
                        self.assertLess(best - second, 2 * bound)

    def test_prefixes(self):
        """The second round finds the whole blocks of its prompts in the cache."""
        for results in (self.own["prefixes"], self.sluice["prefixes"]):
            lengths = models.CASES["prefixes"].prompts
            wanted = [0] * len(lengths) + [(length - 1) // models.BLOCK * models.BLOCK for length in lengths]
            self.assertEqual([result.cached for result in results], wanted)


if __name__ == "__main__":
    unittest.main()
