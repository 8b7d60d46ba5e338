#include "textflag.h"

// One column of half a tile: subtracts the column of a in Y8 and Y9 times a
// number of b.
#define STEP(offset, number, upper, lower) \
	VBROADCASTSD offset(BX), number \
	VFNMADD231PD Y8, number, upper  \
	VFNMADD231PD Y9, number, lower

// func subtractFMA(t *tile, a, b []float64)
//
// The left half of the tile is done first and then the right one. Y0 to Y7 are
// its four columns, two for each.
TEXT ·subtractFMA(SB), NOSPLIT, $0-56
	MOVQ t+0(FP), DI
	MOVQ b_base+32(FP), R8
	MOVQ a_len+16(FP), R9
	SHLQ $3, R9 // bytes
	MOVQ $2, DX

half:
	MOVQ    a_base+8(FP), SI
	MOVQ    R8, BX
	MOVQ    R9, CX
	VMOVUPD (DI), Y0
	VMOVUPD 32(DI), Y1
	VMOVUPD 64(DI), Y2
	VMOVUPD 96(DI), Y3
	VMOVUPD 128(DI), Y4
	VMOVUPD 160(DI), Y5
	VMOVUPD 192(DI), Y6
	VMOVUPD 224(DI), Y7
	PCALIGN $32

column:
	SUBQ    $64, CX
	JLT     store
	VMOVUPD (SI), Y8
	VMOVUPD 32(SI), Y9
	STEP(0, Y10, Y0, Y1)
	STEP(8, Y11, Y2, Y3)
	STEP(16, Y12, Y4, Y5)
	STEP(24, Y13, Y6, Y7)
	ADDQ    $64, SI
	ADDQ    $64, BX
	JMP     column

store:
	VMOVUPD Y0, (DI)
	VMOVUPD Y1, 32(DI)
	VMOVUPD Y2, 64(DI)
	VMOVUPD Y3, 96(DI)
	VMOVUPD Y4, 128(DI)
	VMOVUPD Y5, 160(DI)
	VMOVUPD Y6, 192(DI)
	VMOVUPD Y7, 224(DI)
	ADDQ    $256, DI
	ADDQ    $32, R8
	DECQ    DX
	JNZ     half
	VZEROUPPER
	RET

// func spreadFMA(x [][edge]float64, rows []int32, values []float64, v *[edge]float64)
TEXT ·spreadFMA(SB), NOSPLIT, $0-80
	MOVQ    x_base+0(FP), DI
	MOVQ    rows_base+24(FP), SI
	MOVQ    rows_len+32(FP), CX
	MOVQ    values_base+48(FP), BX
	MOVQ    v+72(FP), AX
	VMOVUPD (AX), Y8
	VMOVUPD 32(AX), Y9
	PCALIGN $32

row:
	SUBQ         $1, CX
	JLT          done
	MOVLQSX      (SI), AX
	SHLQ         $6, AX // 64 bytes each
	VBROADCASTSD (BX), Y10
	VMOVUPD      (DI)(AX*1), Y0
	VMOVUPD      32(DI)(AX*1), Y1
	VFNMADD231PD Y8, Y10, Y0
	VFNMADD231PD Y9, Y10, Y1
	VMOVUPD      Y0, (DI)(AX*1)
	VMOVUPD      Y1, 32(DI)(AX*1)
	ADDQ         $4, SI
	ADDQ         $8, BX
	JMP          row

done:
	VZEROUPPER
	RET
