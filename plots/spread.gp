# A figure of repeated runs: a row per results file with its percentiles as a box, and the runs as
# points below it.

load programs.'/common.gp'
load programs.'/frame.gp'

set lmargin at screen across(area_left)
set rmargin at screen across(area_right)
set tmargin at screen down(area_top)
set bmargin at screen down(area_bottom)
set xrange [first:last] noextend
set yrange [n_runs:0] noextend
unset ytics
set xlabel x_title offset 0, 0.3 textcolor rgb text_colour
set grid xtics lt 1 lc rgb grid_colour lw 0.5
plot folder.'/boxes.dat' using 1:($6 + 0.34):($5 - $1):(0) with vectors nohead lw 1.4 lc rgb text_colour, \
     folder.'/boxes.dat' using 1:($6 + 0.24):(0):(0.2) with vectors nohead lw 1.4 lc rgb text_colour, \
     folder.'/boxes.dat' using 5:($6 + 0.24):(0):(0.2) with vectors nohead lw 1.4 lc rgb text_colour, \
     folder.'/boxes.dat' using 2:($6 + 0.34):2:4:($6 + 0.12):($6 + 0.56) with boxxyerror \
         lc rgb 0x56B4E9 fs solid 1 noborder, \
     folder.'/boxes.dat' using 3:($6 + 0.12):(0):(0.44) with vectors nohead lw 2.4 lc rgb 0, \
     folder.'/points.dat' using 1:2 with points pt 7 ps mark(0.35) lc rgb 0x0072B2, \
     (named ? folder.'/boxes.dat' : '/dev/null') using (first):($6 + 0.45):7 with labels right offset -0.8, 0 \
         textcolor rgb text_colour
unset multiplot
set output
