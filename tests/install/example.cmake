# Builds EXAMPLE against the cria installed in WORK/prefix and runs PROGRAM, on the CPU and on the best device here.
cmake_minimum_required(VERSION 3.25)
set(checked COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)

file(REMOVE_RECURSE ${WORK}/build)
execute_process(COMMAND ${CMAKE_COMMAND} -G ${GENERATOR} -S ${EXAMPLE} -B ${WORK}/build
  -DCMAKE_PREFIX_PATH=${WORK}/prefix -DCMAKE_CXX_COMPILER=${CXX} -DCRIA_NVCC=${NVCC}
  -DCMAKE_CXX_FLAGS=-I${WORK}/decoy -DCMAKE_CUDA_FLAGS=-I${WORK}/decoy
  "-DCMAKE_CUDA_ARCHITECTURES=${ARCHITECTURES}" --no-warn-unused-cli ${checked})
execute_process(COMMAND ${CMAKE_COMMAND} --build ${WORK}/build ${checked})
execute_process(COMMAND ${WORK}/build/${PROGRAM} cpu ${checked})
execute_process(COMMAND ${WORK}/build/${PROGRAM} ${checked})
