# lit configuration of the kernel pipeline's tests: most files run sluice-opt or sluice-kernelgen.
import os

import lit.formats

config.name = "sluice"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".ll", ".mlir", ".test"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = config.sluice_lit_folder
config.environment["FILECHECK_OPTS"] = "-enable-var-scope --allow-unused-prefixes=false"
config.environment["PATH"] = os.pathsep.join(
    [config.sluice_tools_folder, config.llvm_tools_folder, config.environment["PATH"]]
)
config.substitutions.append(("%kernel_names", os.path.join(config.sluice_tools_folder, "kernel_names.txt")))
