EXEC_PATH=$(pwd)
if [ ! -d "${EXEC_PATH}/MNIST_Data" ]; then
  if [ ! -f "${EXEC_PATH}/MNIST_Data.zip" ]; then
    wget http://mindspore-website.obs.cn-north-4.myhuaweicloud.com/notebook/datasets/MNIST_Data.zip
  fi
  unzip MNIST_Data.zip
fi
export DATA_PATH=${EXEC_PATH}/MNIST_Data/train/
rm -rf device
mkdir device
echo "start training"
# Start 8 Worker training processes in a loop
for((i=0;i<8;i++));
do
  export MS_WORKER_NUM=8 # Set the number of Worker processes in the cluster to 8
  export MS_SCHED_HOST=127.0.0.1 # Set the Scheduler IP address to the local loop address
  export MS_SCHED_PORT=8118 # Set Scheduler port
  export MS_ROLE=MS_WORKER # Set the started process to the MS_WORKER role
  export MS_NODE_ID=$i # Set process id, optional
  python ./net.py > device/worker_$i.log 2>&1 & # Start training script
done
# Start 1 Scheduler process
export MS_WORKER_NUM=8 # Set the number of Worker processes in the cluster to 8
export MS_SCHED_HOST=127.0.0.1 # Set the Scheduler IP address to the local loop address
export MS_SCHED_PORT=8118 # Set Scheduler port
export MS_ROLE=MS_SCHED # Set the started process to the MS_SCHED role
python ./net.py > device/scheduler.log 2>&1 & # Start training script
