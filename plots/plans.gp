# Plans of a search: throughput against devices, and time against memory.

load programs.'/common.gp'
load programs.'/frame.gp'

set tmargin at screen down(area_top)
set bmargin at screen down(area_bottom)
set border 3 lc rgb line_colour lw 1
set xtics nomirror
set ytics nomirror
set grid ytics lt 1 lc rgb grid_colour lw 0.5

set lmargin at screen across(area_left)
set rmargin at screen across(first_right)
set xrange [least_devices:most_devices] noextend
set yrange [0:most_throughput] noextend
if (geometric) { set logscale x 2 }
set label 1 'devices' at screen 0.5 * (across(area_left) + across(first_right)), down(sheet_height - 12) \
    center textcolor rgb text_colour
set label 2 'samples/s' at screen across(16), 0.5 * (down(area_top) + down(area_bottom)) \
    center rotate by 90 textcolor rgb text_colour
plot folder.'/best.dat' using 1:2:3 with linespoints pt 7 ps mark(0.6) lw 1.6 lc rgb variable

unset logscale x
set lmargin at screen across(second_left)
set rmargin at screen across(area_right)
set xrange [0:most_memory] noextend
set yrange [least_time:most_time] noextend
set label 1 'peak memory of a device, '.memory_unit at screen \
    0.5 * (across(second_left) + across(area_right)), down(sheet_height - 12) center textcolor rgb text_colour
set label 2 'time of a step, '.time_unit at screen across(second_left - 68), \
    0.5 * (down(area_top) + down(area_bottom)) center rotate by 90 textcolor rgb text_colour
plot folder.'/plans.dat' using 1:($4 == 1 ? $2 : NaN):3 with points pt 7 ps mark(0.45) lc rgb variable, \
     folder.'/plans.dat' using 1:($4 == 0 ? $2 : NaN):3 with points pt 6 ps mark(0.6) lw 1 lc rgb variable, \
     folder.'/front.dat' using 1:2 with lines lc rgb text_colour lw 1.4, \
     folder.'/front.dat' using 1:2 with points pt 6 ps mark(0.9) lw 1.4 lc rgb text_colour
unset multiplot
set output
