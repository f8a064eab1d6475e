/* The peer of bench_all_reduce: the same calls, the same check, the same report, through MPI.
 *
 *   mpicc -O2 mpi_all_reduce.c -o mpi_all_reduce
 *   mpirun --oversubscribe -n 4 ./mpi_all_reduce [--touch] 1024 1048576 102228128
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static float value_of(int rank, long i) { return (float)((i * 7 + rank * 13) % 1000); }

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static int calls_of(long bytes) {
  if (bytes <= 64 << 10) return 4000;
  const long calls = (200L << 20) / bytes;
  return calls < 8 ? 8 : calls > 400 ? 400 : (int)calls;
}

static void run(long bytes, int rank, int ranks, int touch) {
  const long count = bytes / (long)sizeof(float);
  float* in = malloc((size_t)bytes);
  float* out = malloc((size_t)bytes);
  for (long i = 0; i < count; ++i) in[i] = value_of(rank, i);
  for (int i = 0; i < 9; ++i) MPI_Allreduce(in, out, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  for (long i = 0; i < count; ++i) {
    float sum = 0;
    for (int r = 0; r < ranks; ++r) sum += value_of(r, i);
    if (out[i] != sum) {
      fprintf(stderr, "wrong answer at element %ld\n", i);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const int calls = calls_of(bytes);
  double* times_us = malloc((size_t)calls * sizeof(double));
  double total = 0, before = MPI_Wtime();
  volatile float sum = 0;
  for (int i = 0; i < calls; ++i) {
    if (touch) { /* as a training step does; not counted */
      for (long k = 0; k < count; ++k) in[k] = value_of(rank, k);
      MPI_Barrier(MPI_COMM_WORLD);
      before = MPI_Wtime();
    }
    MPI_Allreduce(in, out, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    const double now = MPI_Wtime();
    times_us[i] = (now - before) * 1e6;
    total += times_us[i];
    before = now;
    if (touch)
      for (long k = 0; k < count; ++k) sum += out[k];
  }
  qsort(times_us, (size_t)calls, sizeof(double), ascending);
  if (rank == 0)
    printf(
        "{\"program\": \"mpi\", \"ranks\": %d, \"bytes\": %ld, \"min_us\": %.2f, \"median_us\": %.2f, "
        "\"mean_us\": %.2f}\n",
        ranks, bytes, times_us[0], times_us[calls / 2], total / calls);
  free(times_us);
  free(out);
  free(in);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int touch = argc > 1 && strcmp(argv[1], "--touch") == 0;
  for (int i = 1 + touch; i < argc; ++i) run(atol(argv[i]), rank, ranks, touch);
  MPI_Finalize();
  return 0;
}
