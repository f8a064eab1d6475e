/* The peer of bench_collectives: the same calls with the same buffers, through MPI.
 *
 *   mpicc -O2 mpi_collectives.c -o mpi_collectives
 *   mpirun --oversubscribe -n 4 ./mpi_collectives barrier,all_to_all 64 1024
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static int calls_of(long bytes, int ranks) {
  if (bytes <= 64 << 10) return 2000;
  const long calls = (400L << 20) / (bytes * ranks);
  return calls < 5 ? 5 : calls > 200 ? 200 : (int)calls;
}

static void make_call(const char* call, float* in, float* out, int count, int block) {
  if (strcmp(call, "all_reduce") == 0)
    MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  else if (strcmp(call, "broadcast") == 0)
    MPI_Bcast(in, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
  else if (strcmp(call, "all_gather") == 0)
    MPI_Allgather(in, block, MPI_FLOAT, out, block, MPI_FLOAT, MPI_COMM_WORLD);
  else if (strcmp(call, "reduce_scatter") == 0)
    MPI_Reduce_scatter_block(in, out, block, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  else if (strcmp(call, "all_to_all") == 0)
    MPI_Alltoall(in, block, MPI_FLOAT, out, block, MPI_FLOAT, MPI_COMM_WORLD);
  else
    MPI_Barrier(MPI_COMM_WORLD);
}

static void run(const char* call, long bytes, int rank, int ranks) {
  long block = bytes / (long)sizeof(float) / ranks;
  if (block < 1) block = 1;
  const long count = block * ranks;
  float* in = malloc((size_t)count * sizeof(float));
  float* out = malloc((size_t)count * sizeof(float));
  for (long i = 0; i < count; ++i) in[i] = (float)((i * 7 + rank * 13) % 1000), out[i] = 0;
  for (int i = 0; i < (bytes > 1 << 20 ? 3 : 9); ++i) make_call(call, in, out, (int)count, (int)block);
  MPI_Barrier(MPI_COMM_WORLD);
  const int calls = calls_of(bytes, ranks);
  double* times_us = malloc((size_t)calls * sizeof(double));
  double total = 0, before = MPI_Wtime();
  for (int i = 0; i < calls; ++i) {
    make_call(call, in, out, (int)count, (int)block);
    const double now = MPI_Wtime();
    times_us[i] = (now - before) * 1e6;
    total += times_us[i];
    before = now;
  }
  qsort(times_us, (size_t)calls, sizeof(double), ascending);
  if (rank == 0)
    printf("{\"program\": \"mpi\", \"call\": \"%s\", \"ranks\": %d, \"bytes\": %ld, \"median_us\": %.2f, \"mean_us\": %.2f}\n",
           call, ranks, bytes, times_us[calls / 2], total / calls);
  fflush(stdout);
  free(times_us);
  free(out);
  free(in);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (char* call = strtok(argv[1], ","); call != NULL; call = strtok(NULL, ",")) {
    if (strcmp(call, "barrier") == 0)
      run(call, 0, rank, ranks);
    else
      for (int i = 2; i < argc; ++i) run(call, atol(argv[i]), rank, ranks);
  }
  MPI_Finalize();
  return 0;
}
