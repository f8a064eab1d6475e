#!/bin/bash
# Starts one scheduler, MS_SERVER_NUM servers and MS_WORKER_NUM workers (8 of each) of train.py on this host and
# waits for all of them. PYTHON names the interpreter.
cd "$(dirname "$0")" || exit 1
export MS_WORKER_NUM=${MS_WORKER_NUM:-8} MS_SERVER_NUM=${MS_SERVER_NUM:-8}
export MS_SCHED_HOST=${MS_SCHED_HOST:-127.0.0.1} MS_SCHED_PORT=${MS_SCHED_PORT:-8118}
logs=${LOGS:-.}
python=${PYTHON:-python3}

MS_ROLE=MS_SCHED "$python" train.py > "$logs/scheduler.log" 2>&1 &
for ((i = 0; i < MS_SERVER_NUM; i++)); do
  MS_ROLE=MS_PSERVER "$python" train.py > "$logs/server_$i.log" 2>&1 &
done
for ((i = 0; i < MS_WORKER_NUM; i++)); do
  MS_ROLE=MS_WORKER "$python" train.py > "$logs/worker_$i.log" 2>&1 &
done

status=0
for process in $(jobs -p); do
  wait "$process" || status=1
done
exit $status
