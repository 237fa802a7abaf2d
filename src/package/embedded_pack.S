//===- embedded_pack.S - the kernel pack inside libsluice.so --------------------------------------------===//
//
// SLUICE_PACK_FILE is the pack's path; without it the library is built without kernels and the pack has no bytes.
//
//===----------------------------------------------------------------------------------------------------===//
        .section .rodata.sluice_pack, "a", @progbits
        .globl  sluice_embedded_pack
        .hidden sluice_embedded_pack
        .globl  sluice_embedded_pack_bytes
        .hidden sluice_embedded_pack_bytes
        .balign 16
sluice_embedded_pack:
#ifdef SLUICE_PACK_FILE
        .incbin SLUICE_PACK_FILE
#endif
pack_end:
        .balign 8
sluice_embedded_pack_bytes:
        .quad   pack_end - sluice_embedded_pack
        .section .note.GNU-stack, "", @progbits
