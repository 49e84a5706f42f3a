# libtorch (Debian's libtorch-dev) and oneDNN, which it depends on and which computes our matrix
# products. Plain link lines: find_package(Torch) would look for CUDA and add flags of its own.
find_path(TEMPER_TORCH_INCLUDE ATen/ATen.h REQUIRED)
find_library(TEMPER_TORCH_LIBRARY torch REQUIRED)
find_library(TEMPER_TORCH_CPU_LIBRARY torch_cpu REQUIRED)
find_library(TEMPER_C10_LIBRARY c10 REQUIRED)
find_library(TEMPER_DNNL_LIBRARY NAMES dnnl libdnnl.so.2 libdnnl.so.3 REQUIRED)

add_library(temper_torch INTERFACE)
# /usr/include is searched anyway, and naming it as a system folder breaks #include_next.
if(NOT TEMPER_TORCH_INCLUDE STREQUAL "/usr/include")
  target_include_directories(temper_torch SYSTEM INTERFACE ${TEMPER_TORCH_INCLUDE})
endif()
target_link_libraries(temper_torch INTERFACE
  ${TEMPER_TORCH_LIBRARY} ${TEMPER_TORCH_CPU_LIBRARY} ${TEMPER_C10_LIBRARY}
  ${TEMPER_DNNL_LIBRARY})
