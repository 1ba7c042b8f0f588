# Live memory against time, the mean over devices: of one run by category, of several a line each.

load programs.'/common.gp'
load programs.'/frame.gp'

set lmargin at screen across(area_left)
set rmargin at screen across(area_right)
set tmargin at screen down(area_top)
set bmargin at screen down(area_bottom)
set border 3 lc rgb line_colour lw 1
set xrange [from:until] noextend
set yrange [0:highest] noextend
set ytics step
set xlabel x_title offset 0, 0.3 textcolor rgb text_colour
set label 2 y_title at screen across(16), 0.5 * (down(area_top) + down(area_bottom)) \
    center rotate by 90 textcolor rgb text_colour
set grid ytics lt 1 lc rgb grid_colour lw 0.5
if (capacity > 0) {
    set arrow 1 from from, capacity to until, capacity nohead front dt (6, 4) lw 1.5 lc rgb text_colour
}
if (stacked) {
    plot for [k = n_layers:1:-1] folder.sprintf('/mean-%d.dat', k) using 1:2 with filledcurves y1=0 \
             lc rgb int(word(colours, k)), \
         folder.'/fullest-1.dat' using 1:2 with lines lw 0.8 lc rgb 0
} else {
    plot for [k = 1:n_runs] folder.sprintf('/fullest-%d.dat', k) using 1:2 with lines lw 0.6 \
             lc rgb int(word(colours, k)), \
         for [k = 1:n_runs] folder.sprintf('/mean-%d.dat', k) using 1:2 with lines lw 1.6 \
             lc rgb int(word(colours, k)), \
         for [k = 1:n_runs] folder.sprintf('/marks-%d.dat', k) using 1:2:3:4 with points pt variable \
             ps mark(0.8) lc rgb variable
}
unset multiplot
set output
