"""The peer of bench_servers: a table on a server of TensorFlow's ParameterServerStrategy, with Adam.

tensorflow_rows.py PORTS ROWS WIDTH BATCH ROUNDS prints the medians of a pull and of a push, in seconds, as
JSON. PORTS are three free ones: of the server, the worker and the coordinator, which is this process.
"""

import json
import multiprocessing
import os
import statistics
import sys
import time

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

PORTS = [int(port) for port in sys.argv[1].split(",")]
ROWS, WIDTH, BATCH, ROUNDS = map(int, sys.argv[2:])
CLUSTER = {
    "ps": [f"127.0.0.1:{PORTS[0]}"],
    "worker": [f"127.0.0.1:{PORTS[1]}"],
    "chief": [f"127.0.0.1:{PORTS[2]}"],
}


def serve(kind):
    import tensorflow as tf

    tf.distribute.Server(CLUSTER, job_name=kind, task_index=0, protocol="grpc").join()


def measure():
    import numpy as np
    import tensorflow as tf

    os.environ["TF_CONFIG"] = json.dumps({"cluster": CLUSTER, "task": {"type": "chief", "index": 0}})
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver(rpc_layer="grpc")
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        table = tf.Variable(tf.random.normal((ROWS, WIDTH), stddev=0.01))
        optimizer = tf.keras.optimizers.Adam(0.01)
        optimizer.build([table])

    @tf.function
    def pull(ids):
        return tf.reduce_sum(tf.gather(table, ids))  # what a worker does with them stays there

    def update(ids, gradients):
        optimizer.apply_gradients([(tf.IndexedSlices(gradients, ids, (ROWS, WIDTH)), table)])

    @tf.function
    def push(ids, gradients):
        strategy.run(update, args=(ids, gradients))

    def run(step, *arguments):
        begin = time.perf_counter()
        result = coordinator.schedule(step, args=arguments)
        coordinator.join()
        return time.perf_counter() - begin, result.fetch()

    random = np.random.default_rng(5)
    gradients = tf.fill((BATCH, WIDTH), 0.25)
    pulls, pushes = [], []
    for _ in range(ROUNDS + 2):  # the first two trace
        ids = tf.constant(random.integers(0, ROWS, BATCH))
        pulls.append(run(pull, ids)[0])
        pushes.append(run(push, ids, gradients)[0])
    print(json.dumps({"pull": statistics.median(pulls[2:]), "push": statistics.median(pushes[2:])}))


if __name__ == "__main__":
    processes = [
        multiprocessing.get_context("spawn").Process(target=serve, args=(kind,), daemon=True)
        for kind in ("ps", "worker")
    ]
    for process in processes:
        process.start()
    measure()
    for process in processes:
        process.kill()
