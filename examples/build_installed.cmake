# Installs the cria built in CRIA_BUILD under WORK, then builds EXAMPLE against that and runs PROGRAM, on
# the CPU and on the best device here.
set(checked COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)

file(REMOVE_RECURSE ${WORK})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${CRIA_BUILD} --prefix ${WORK}/prefix ${checked})
execute_process(COMMAND ${CMAKE_COMMAND} -G ${GENERATOR} -S ${EXAMPLE} -B ${WORK}/build
  -DCMAKE_PREFIX_PATH=${WORK}/prefix -DCMAKE_CXX_COMPILER=${CXX} -DCRIA_NVCC=${NVCC}
  "-DCMAKE_CUDA_ARCHITECTURES=${ARCHITECTURES}" --no-warn-unused-cli ${checked})
execute_process(COMMAND ${CMAKE_COMMAND} --build ${WORK}/build ${checked})
execute_process(COMMAND ${WORK}/build/${PROGRAM} cpu ${checked})
execute_process(COMMAND ${WORK}/build/${PROGRAM} ${checked})
