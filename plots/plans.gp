# Plans of a search: throughput against devices, where there are several numbers of them, and time
# against memory.

load programs.'/common.gp'
load programs.'/frame.gp'

set border 3 lc rgb line_colour lw 1
set grid ytics lt 1 lc rgb grid_colour lw 0.5

if (has_first) {
    set tmargin at screen down(area_top)
    set bmargin at screen down(first_bottom)
    set lmargin at screen across(area_left)
    set rmargin at screen across(first_right)
    set xrange [least_devices:most_devices] noextend
    set yrange [0:most_throughput] noextend
    if (geometric) { set logscale x 2 }
    set label 1 'devices' at screen 0.5 * (across(area_left) + across(first_right)), \
        down(first_bottom + 28) center textcolor rgb text_colour
    set label 2 'throughput (samples/s)' at screen across(16), 0.5 * (down(area_top) + down(first_bottom)) \
        center rotate by 90 textcolor rgb text_colour
    plot folder.'/best.dat' using 1:2:4 with lines lw 1.2 lc rgb variable, \
         folder.'/best.dat' using 1:2:3:4 with points pt variable ps mark(0.7) lc rgb variable
    unset logscale x
}

set tmargin at screen down(second_top)
set bmargin at screen down(area_bottom)
set lmargin at screen across(second_left)
set rmargin at screen across(area_right)
set xrange [0:most_memory] noextend
set yrange [least_time:most_time] noextend
set label 1 x_title at screen 0.5 * (across(second_left) + across(area_right)), \
    down(sheet_height - 12) center textcolor rgb text_colour
set label 2 y_title at screen across(second_left - 48), \
    0.5 * (down(second_top) + down(area_bottom)) center rotate by 90 textcolor rgb text_colour
if (capacity > 0) {
    set arrow 1 from capacity, least_time to capacity, most_time nohead front dt (5, 4) lw 1.4 \
        lc rgb text_colour
}
foot_across = second_left
foot_down = area_bottom
load programs.'/broken.gp'
plot folder.'/plans.dat' using 1:2:3:4 with points pt variable ps mark(0.5) lc rgb variable, \
     folder.'/front.dat' using 1:2 with lines lc rgb text_colour lw 1.4, \
     folder.'/front.dat' using 1:2 with points pt 6 ps mark(1) lw 1.2 lc rgb text_colour
unset multiplot
set output
