# Title, legend and free texts: a plot of the whole sheet whose axes count points.

set label 1 heading at 10, 15 left font font(font_size + 2) textcolor rgb text_colour
set margins 0, 0, 0, 0
set lmargin at screen 0
set rmargin at screen 1
set tmargin at screen 1
set bmargin at screen 0
set xrange [0:sheet_width]
set yrange [sheet_height:0]
unset tics
unset border
plot folder.'/swatches.dat' using 1:3:1:2:3:4:5 with boxxyerror lc rgb variable, \
     folder.'/texts.dat' using 1:2:3:4 with labels left textcolor rgb variable, \
     folder.'/strokes.dat' using 1:2:3:4:5 with vectors nohead lc rgb variable lw 1, \
     folder.'/marks.dat' using 1:2:3:4 with points pt variable ps mark(0.8) lc rgb variable lw 1.4
unset label 1
set border 1 lc rgb line_colour lw 1
set tics nomirror out scale 0.5 textcolor rgb text_colour
set xtics nomirror
set ytics nomirror
