/* The calls that the transport makes, by hand: what it is compared with.
 *
 * For every size in bytes on the command line it prints one line an operation:
 * name, bytes, seconds a call (median of batches). With EMB_MPI_BENCH=calls
 * ranks first send each other what they are about to call, as the transport's do.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAG = 1, BATCHES = 15, BLOCK = 512 };

static int me, world;
static MPI_Comm comm;
static MPI_Request *requests;
/* Words of what a rank says of a call: its own, and those of all. */
static size_t words;
static unsigned long long *said, *heard;

static size_t start_of(int rank, size_t len) {
    size_t rest = len % world;
    return len / world * rank + (rest < (size_t)rank ? rest : (size_t)rank);
}

static void agree(void) {
    int begun = 0, bytes = words * sizeof *said;
    if (!said)
        return;
    for (int peer = 0; peer < world; peer++)
        if (peer != me)
            MPI_Irecv(heard + peer * words, bytes, MPI_BYTE, peer, TAG, comm, &requests[begun++]);
    for (int turn = 1; turn < world; turn++)
        MPI_Isend(said, bytes, MPI_BYTE, (me + turn) % world, TAG, comm, &requests[begun++]);
    MPI_Waitall(begun, requests, MPI_STATUSES_IGNORE);
}

/* Part `rank` of `send` to each, part by sender into `recv`. */
static void all_to_all(const float *send, float *recv, size_t len) {
    size_t each = len / world;
    int begun = 0;
    for (int peer = 0; peer < world; peer++)
        if (peer != me)
            MPI_Irecv(recv + peer * each, each * sizeof(float), MPI_BYTE, peer, TAG, comm, &requests[begun++]);
    for (int turn = 1; turn < world; turn++) {
        int peer = (me + turn) % world;
        MPI_Isend(send + peer * each, each * sizeof(float), MPI_BYTE, peer, TAG, comm, &requests[begun++]);
    }
    memcpy(recv + me * each, send + me * each, each * sizeof(float));
    MPI_Waitall(begun, requests, MPI_STATUSES_IGNORE);
}

/* Parts are exchanged, added in rank order, and gathered. */
static void all_reduce(float *values, float *room, size_t len) {
    size_t first = start_of(me, len), own = start_of(me + 1, len) - first;
    int begun = 0;
    for (int peer = 0; peer < world; peer++)
        if (peer != me)
            MPI_Irecv(room + peer * own, own * sizeof(float), MPI_BYTE, peer, TAG, comm, &requests[begun++]);
    for (int turn = 1; turn < world; turn++) {
        int peer = (me + turn) % world;
        size_t from = start_of(peer, len), to = start_of(peer + 1, len);
        MPI_Isend(values + from, (to - from) * sizeof(float), MPI_BYTE, peer, TAG, comm, &requests[begun++]);
    }
    MPI_Waitall(begun, requests, MPI_STATUSES_IGNORE);
    float sums[BLOCK];
    for (size_t at = 0; at < own; at += BLOCK) {
        size_t n = own - at < BLOCK ? own - at : BLOCK;
        memcpy(sums, (me == 0 ? values + first : room) + at, n * sizeof(float));
        for (int rank = 1; rank < world; rank++) {
            const float *part = (rank == me ? values + first : room + rank * own) + at;
            for (size_t k = 0; k < n; k++)
                sums[k] += part[k];
        }
        memcpy(values + first + at, sums, n * sizeof(float));
    }
    begun = 0;
    for (int peer = 0; peer < world; peer++) {
        size_t from = start_of(peer, len), to = start_of(peer + 1, len);
        if (peer != me)
            MPI_Irecv(values + from, (to - from) * sizeof(float), MPI_BYTE, peer, TAG, comm, &requests[begun++]);
    }
    for (int turn = 1; turn < world; turn++)
        MPI_Isend(values + first, own * sizeof(float), MPI_BYTE, (me + turn) % world, TAG, comm, &requests[begun++]);
    MPI_Waitall(begun, requests, MPI_STATUSES_IGNORE);
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int count, char **list) {
    int level;
    MPI_Init_thread(&count, &list, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &world);
    requests = malloc(2 * world * sizeof *requests);
    const char *check = getenv("EMB_MPI_BENCH");
    if (check && strcmp(check, "calls") == 0) {
        words = 8 + 2 * world;
        said = calloc(words, sizeof *said);
        heard = calloc(words * world, sizeof *heard);
    }
    for (int argument = 1; argument < count; argument++) {
        size_t bytes = strtoull(list[argument], NULL, 10), len = bytes / sizeof(float);
        float *values = malloc(bytes), *room = malloc(bytes + world * sizeof(float));
        for (size_t k = 0; k < len; k++)
            values[k] = room[k] = 0;
        int calls = (int)(((size_t)16 << 20) / bytes);
        calls = calls < 1 ? 1 : calls > 50 ? 50 : calls;
        for (int what = 0; what < 2; what++) {
            double seconds[BATCHES];
            for (int batch = -1; batch < BATCHES; batch++) {
                MPI_Barrier(comm);
                double began = MPI_Wtime();
                for (int call = 0; call < calls; call++) {
                    agree();
                    if (what == 0)
                        all_to_all(values, room, len);
                    else
                        all_reduce(values, room, len);
                }
                if (batch >= 0)
                    seconds[batch] = (MPI_Wtime() - began) / calls;
            }
            qsort(seconds, BATCHES, sizeof(double), by_size);
            if (me == 0)
                printf("%s %zu %.9f\n", what == 0 ? "all_to_all_v" : "all_reduce", bytes,
                       seconds[BATCHES / 2]);
        }
        free(values);
        free(room);
    }
    MPI_Finalize();
    return 0;
}
