"""Times of work that is replayed back to back on a GPU, and what scripts here report about them."""
import statistics

import torch


def quantile(values, fraction):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(fraction * len(ordered)))]


def capture(work, stream):
    """A CUDA graph of work(), which has run before on this stream."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        work()
    return graph


def times_ms(work, seconds=1.0, least=10, most=400):
    """Milliseconds of each call, the queue never empty: between events recorded one after the other."""
    def run(count):
        events = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
        events[0].record()
        for event in events[1:]:
            work()
            event.record()
        torch.cuda.synchronize()
        return [a.elapsed_time(b) for a, b in zip(events, events[1:])]

    warm = statistics.median(run(5))
    run(max(2, min(most, int(200 / warm))))  # 0.2 s, for the clocks
    return run(max(least, min(most, int(seconds * 1e3 / warm))))


def spread(times):
    return {"ms": statistics.median(times), "ms_p10": quantile(times, 0.1), "ms_p90": quantile(times, 0.9)}
