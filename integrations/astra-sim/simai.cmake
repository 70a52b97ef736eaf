# The program SimAI_Clearway: SimAI's system and workload layers, which its build system knows only together with ns-3, and our network.
set(SIMAI_ROOT "${SIMAI}/astra-sim-alibabacloud")
if(NOT EXISTS "${SIMAI_ROOT}/astra-sim/system/AstraNetworkAPI.hh")
    message(FATAL_ERROR "SIMAI=\"${SIMAI}\" is no checkout of SimAI\n  fix: pass -DSIMAI=/path/to/SimAI")
endif()

file(GLOB SIMAI_SOURCES "${SIMAI_ROOT}/astra-sim/system/*.cc" "${SIMAI_ROOT}/astra-sim/system/*/*.cc"
     "${SIMAI_ROOT}/astra-sim/workload/*.cc")
# Parts for the physical network, which need MPI and libibverbs.
list(FILTER SIMAI_SOURCES EXCLUDE REGEX "(SimAiFlowModelRdma|BootStrapnet|PhyMultiThread)\\.cc$")

# SimAI 1.7 took the model of NCCL out of this tree, and includes it as SimCCL/mock.
if(NOT EXISTS "${SIMAI_ROOT}/astra-sim/system/MockNcclGroup.cc")
    set(SIMAI_MOCK "${SIMAI}/SimCCL/src/mock/${SIMAI_NCCL_VERSION}")
    if(NOT EXISTS "${SIMAI_MOCK}/MockNcclGroup.h")
        message(FATAL_ERROR "${SIMAI_MOCK} is missing\n  fix: git -C ${SIMAI} submodule update --init SimCCL, or another -DSIMAI_NCCL_VERSION")
    endif()
    file(GLOB SIMAI_MOCK_SOURCES "${SIMAI_MOCK}/*.cc")
    list(APPEND SIMAI_SOURCES ${SIMAI_MOCK_SOURCES})
    file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/simai/SimCCL")
    file(CREATE_LINK "${SIMAI_MOCK}" "${CMAKE_BINARY_DIR}/simai/SimCCL/mock" SYMBOLIC)
endif()

add_library(SimAI STATIC ${SIMAI_SOURCES})
target_compile_definitions(SimAI PUBLIC NS3_MTP)
target_compile_options(SimAI PRIVATE -w)
target_include_directories(SimAI PUBLIC "${CMAKE_CURRENT_SOURCE_DIR}/src/simai")
target_include_directories(SimAI SYSTEM PUBLIC "${SIMAI_ROOT}" "${CMAKE_BINARY_DIR}/simai")

add_executable(SimAI_Clearway src/simai_main.cc src/network.cc src/simai_network.cc)
clearway_program(SimAI_Clearway)
target_link_libraries(SimAI_Clearway PRIVATE SimAI)
