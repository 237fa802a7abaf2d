//===- embedded_pack.S - the kernel pack inside libsluice.so --------------------------------------------===//
//
// SLUICE_PACK_FILE is the pack's path; without it the library is built without kernels and the range is empty.
//
//===----------------------------------------------------------------------------------------------------===//
        .section .rodata.sluice_pack, "a", @progbits
        .globl  sluice_embedded_pack_begin
        .hidden sluice_embedded_pack_begin
        .globl  sluice_embedded_pack_end
        .hidden sluice_embedded_pack_end
        .balign 16
sluice_embedded_pack_begin:
#ifdef SLUICE_PACK_FILE
        .incbin SLUICE_PACK_FILE
#endif
sluice_embedded_pack_end:
        .byte   0
        .section .note.GNU-stack, "", @progbits
