"""The step of nn.EmbeddingBag that the bench's own step is compared with.

Lookup and sum, sparse gradient, plain descent: one table, the same rows, dim, bags and ids.
"""

import argparse
import json
import statistics

import torch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("rows", "dim", "batch", "ids"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--out", required=True)
    asked = parser.parse_args()

    torch.manual_seed(1)
    device = torch.device("cuda")
    bag = torch.nn.EmbeddingBag(asked.rows, asked.dim, mode="sum", sparse=True, device=device)
    descent = torch.optim.SGD(bag.parameters(), lr=0.01)
    ids = torch.randint(asked.rows, (asked.batch * asked.ids,), device=device)
    starts = torch.arange(0, asked.batch * asked.ids, asked.ids, device=device)
    gradient = torch.full((asked.batch, asked.dim), 1e-3, device=device)
    cache = torch.empty(512 << 20, dtype=torch.uint8, device=device)

    def step() -> None:
        bag(ids, starts).backward(gradient)
        descent.step()
        descent.zero_grad(set_to_none=True)

    for _ in range(3):
        step()
    seconds = []
    for _ in range(asked.samples):
        cache.zero_()
        begin = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        begin.record()
        step()
        end.record()
        end.synchronize()
        seconds.append(begin.elapsed_time(end) * 1e-3)
    result = {"torch": torch.__version__, "seconds": statistics.median(seconds)}
    with open(asked.out, "w", encoding="utf-8") as file:
        json.dump(result, file)
    print(result)


if __name__ == "__main__":
    main()
