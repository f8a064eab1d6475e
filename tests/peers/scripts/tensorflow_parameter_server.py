"""Parameter servers between graphs: each worker has its own points, the servers keep the one line."""

import argparse

import numpy as np
import tensorflow.compat.v1 as tf

parser = argparse.ArgumentParser()
parser.add_argument("--task_index", type=int, required=True)
parser.add_argument("--ps_hosts", required=True)
parser.add_argument("--worker_hosts", required=True)
parser.add_argument("--job_name", required=True)
args = parser.parse_args()

cluster = tf.train.ClusterSpec({"ps": args.ps_hosts.split(","), "worker": args.worker_hosts.split(",")})
server = tf.train.Server(cluster, job_name=args.job_name, task_index=args.task_index)
if args.job_name == "ps":
    server.join()  # for ever

tf.disable_eager_execution()
points = np.random.default_rng(args.task_index).random((64, 1), np.float32)
with tf.device(tf.train.replica_device_setter(cluster=cluster)):
    x = tf.placeholder(tf.float32, [None, 1])
    weight = tf.get_variable("weight", [1, 1], initializer=tf.zeros_initializer())
    bias = tf.get_variable("bias", [1], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean((tf.matmul(x, weight) + bias - (3 * x + 1)) ** 2)
    step = tf.train.get_or_create_global_step()
    train = tf.train.GradientDescentOptimizer(0.3).minimize(loss, global_step=step)

with tf.train.MonitoredTrainingSession(
    master=server.target,
    is_chief=args.task_index == 0,
    config=tf.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{args.task_index}"]),
) as session:
    while session.run(step) < 600:
        session.run(train, {x: points})
    found = session.run([weight, bias])
print(f"worker {args.task_index}: weight {found[0].item():.3f} bias {found[1].item():.3f}", flush=True)
