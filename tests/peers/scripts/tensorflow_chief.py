"""ParameterServerStrategy: the chief hands steps out, workers and servers only serve, as TF_CONFIG says."""

import tensorflow as tf

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if resolver.task_type in ("worker", "ps"):
    server = tf.distribute.Server(
        resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc"
    )
    server.join()  # for ever

strategy = tf.distribute.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    weight = tf.Variable(0.0)
    bias = tf.Variable(0.0)


@tf.function
def step():
    def fit():
        x = tf.random.stateless_uniform([64], seed=[1, 2])
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((weight * x + bias - (3 * x + 1)) ** 2)
        for variable, gradient in zip([weight, bias], tape.gradient(loss, [weight, bias]), strict=True):
            variable.assign_sub(0.1 * gradient)

    strategy.run(fit)


for _ in range(800):
    coordinator.schedule(step)
coordinator.join()
workers = len(resolver.cluster_spec().as_dict()["worker"])
print(f"{workers} workers: weight {weight.numpy():.3f} bias {bias.numpy():.3f}", flush=True)
