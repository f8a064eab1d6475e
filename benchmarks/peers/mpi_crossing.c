/* The peer of bench_crossing: the same messages, the same check, the same report, through MPI.
 *
 *   mpicc -O2 mpi_crossing.c -o mpi_crossing
 *   mpirun --oversubscribe -n 2 ./mpi_crossing 1024 65536 1048576
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static int rounds_of(long bytes) {
  if (bytes <= 64 << 10) return 4000;
  const long rounds = (400L << 20) / bytes;
  return rounds < 8 ? 8 : rounds > 400 ? 400 : (int)rounds;
}

static void go_and_return(int rank, char* sent, char* received, long bytes) {
  if (rank == 0) {
    MPI_Send(sent, (int)bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(received, (int)bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(received, (int)bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(received, (int)bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
  }
}

static void run(long bytes, int rank) {
  char* sent = malloc((size_t)bytes);
  char* received = calloc(1, (size_t)bytes);
  for (int round = 0; round < 3; ++round) {
    for (long i = 0; i < bytes; ++i) sent[i] = (char)(i * 7 + i / 251 + round);
    go_and_return(rank, sent, received, bytes);
    if (rank == 0 && memcmp(sent, received, (size_t)bytes) != 0) {
      fprintf(stderr, "other bytes came back\n");
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
  for (int i = 0; i < 32; ++i) go_and_return(rank, sent, received, bytes);
  MPI_Barrier(MPI_COMM_WORLD);
  const int rounds = rounds_of(bytes);
  double* times_us = malloc((size_t)rounds * sizeof(double));
  double total = 0, before = MPI_Wtime();
  for (int i = 0; i < rounds; ++i) {
    go_and_return(rank, sent, received, bytes);
    const double now = MPI_Wtime();
    times_us[i] = (now - before) * 1e6 / 2;
    total += times_us[i];
    before = now;
  }
  qsort(times_us, (size_t)rounds, sizeof(double), ascending);
  if (rank == 0)
    printf(
        "{\"program\": \"mpi\", \"bytes\": %ld, \"min_us\": %.2f, \"median_us\": %.2f, \"mean_us\": %.2f}\n",
        bytes, times_us[0], times_us[rounds / 2], total / rounds);
  free(times_us);
  free(received);
  free(sent);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 1; i < argc; ++i) run(atol(argv[i]), rank);
  MPI_Finalize();
  return 0;
}
