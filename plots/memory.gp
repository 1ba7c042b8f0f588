# Live memory by category: a panel per device over time, below each other; or, for many devices, a bar
# per device at its peak and one panel for the fullest.

load programs.'/common.gp'
load programs.'/frame.gp'

set lmargin at screen across(area_left)
set rmargin at screen across(area_right)
set yrange [0:highest] noextend
set label 2 y_title at screen across(16), 0.5 * (down(area_top) + down(area_bottom)) \
    center rotate by 90 textcolor rgb text_colour
set grid ytics lt 1 lc rgb grid_colour lw 0.5

if (bars_bottom > 0) {
    set tmargin at screen down(area_top)
    set bmargin at screen down(bars_bottom)
    set xrange [0:n_devices] noextend
    set xlabel 'device, at its peak' offset 0, 0.3 textcolor rgb text_colour
    set ytics bars_step
    set xtics scale 0 ()
    do for [i = 0:n_devices - 1:tick_step] {
        set xtics add (device_name(first_device + i) i + 0.5)
    }
    plot folder.'/bars.dat' using 1:3:1:2:3:4:5 with boxxyerror lc rgb variable, \
         folder.'/capacities.dat' using 1:2:3:(0) with vectors nohead dt (4, 3) lw 1.5 lc rgb text_colour
}

set xrange [from:until] noextend
set xtics scale 0.5 autofreq
set ytics panel_step
array top[n_panels]
array bottom[n_panels]
array capacity[n_panels]
array peak_time[n_panels]
array peak[n_panels]
do for [i = 1:n_panels] {
    stats folder.'/panels.dat' every ::(i - 1)::(i - 1) using (top[i] = $1, bottom[i] = $2, capacity[i] = $3, peak_time[i] = $4, peak[i] = $5) nooutput
}
do for [i = 1:n_panels] {
    set tmargin at screen down(top[i])
    set bmargin at screen down(bottom[i])
    set format x (i == n_panels ? '%.6g' : '')
    if (i == n_panels) {
        set xlabel x_title offset 0, 0.3 textcolor rgb text_colour
    } else {
        unset xlabel
    }
    set arrow 1 from from, capacity[i] to until, capacity[i] nohead front dt (6, 4) lw 1.5 lc rgb text_colour
    if (capacity[i] == 0 || capacity[i] > highest) { unset arrow 1 }
    plot for [k = n_layers:1:-1] folder.sprintf('/panel-%d-%d.dat', i - 1, k) using 1:2 with filledcurves y1=0 lc rgb int(word(colours, k)), \
         '+' using (peak_time[i]):(peak[i]) every ::0::0 with points pt 6 ps mark(0.9) lw 1.5 lc rgb 0
    unset arrow 1
    unset label 2
}
unset multiplot
set output
