# SPDX-License-Identifier: MIT
"""The table of docs/transformers.md: W_Q W_K' of all heads of a torch.nn.MultiheadAttention (d = 64, 4 heads, T = 8), from n sequences.

    PYTHONPATH=build/release/python python3 bench/heads.py [--numbers 48,64,96,128,256] [--seeds 3] [--prior bilinear]
"""
import argparse
import itertools
import time
import warnings

import bayesaim
import numpy as np
import torch

D, HEADS, T = 64, 4, 8
D_K = D // HEADS


def tokens_of(kind, seed, n):
    rng = np.random.default_rng(seed + 1000)
    if kind == "Gaussian":
        return rng.standard_normal((n, T, D))
    vocabulary = rng.standard_normal((1000, D)) @ (0.5 * np.eye(D) + 0.1 * rng.standard_normal((D, D)))
    positions = 0.3 * rng.standard_normal((T, D))
    return vocabulary[rng.integers(0, 1000, (n, T))] + positions + 0.2


def heads_of(seed, tokens, causal):
    """Attention maps (n, heads, T, T), and S of each head."""
    torch.manual_seed(seed)
    module = torch.nn.MultiheadAttention(D, HEADS, batch_first=True)
    with torch.no_grad():
        module.in_proj_bias.normal_(0, 0.5)
        module.double()
        x = torch.tensor(tokens)
        mask = torch.triu(torch.ones(T, T, dtype=torch.bool), 1) if causal else None
        maps = module(x, x, x, attn_mask=mask, average_attn_weights=False)[1].numpy()
    weight = module.in_proj_weight.detach().numpy()
    rows = [slice(h * D_K, (h + 1) * D_K) for h in range(HEADS)]
    return maps, [weight[:D][one].T @ weight[D : 2 * D][one] * np.sqrt(D / D_K) for one in rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--numbers", default="48,64,96,128,256", help="of sequences")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--prior", default="bilinear", help="bilinear, learn or none")
    parser.add_argument("--attention", default="self,causal")
    parser.add_argument("--tokens", default="Gaussian,embeddings")
    arguments = parser.parse_args()
    prior = None if arguments.prior == "none" else arguments.prior
    warnings.simplefilter("ignore", bayesaim.ConvergenceWarning)
    for attention, kind, n in itertools.product(
        arguments.attention.split(","), arguments.tokens.split(","), map(int, arguments.numbers.split(","))
    ):
        errors, fits, verdicts, widths, scales, start = [], 0, set(), [], [], time.process_time()
        for seed in range(arguments.seeds):
            tokens = tokens_of(kind, seed, n)
            maps, truth = heads_of(seed, tokens, attention == "causal")
            for h in range(HEADS):
                options = {"attention": attention, "prior": prior, "threads": 1}
                try:
                    try:
                        result = bayesaim.fit(tokens, maps[:, h], **options)
                    except ValueError as error:
                        verdicts.add(str(error))
                        result = bayesaim.fit(tokens, maps[:, h], holdout=0, **options)
                except ValueError as error:
                    verdicts.add(str(error))
                    continue
                errors.append(np.linalg.norm(result.estimate - truth[h]) / np.linalg.norm(truth[h]))
                widths.append(result.learned.get("width", np.nan))
                scales.append(result.learned.get("scale", np.nan))
                fits += result.fits
                verdicts.add(f"{result.status}: {result.verdict}")
        text = f"{attention} {kind} n={n}: "
        if errors:
            text += (
                f"errors {min(errors):.0e} {np.median(errors):.0e} {max(errors):.0e}, {np.sum(np.array(errors) < 1e-3)} of"
                f" {len(errors)} below 1e-3, {fits} fit, width {min(widths):.2f} to {max(widths):.2f},"
                f" scale {min(scales):.2f} to {max(scales):.2f}, {(time.process_time() - start) / len(errors):.1f} s each"
            )
        print(text, *sorted(verdicts)[:4], sep="\n    ", flush=True)


if __name__ == "__main__":
    main()
